# Checks of the stand-alone build. Inside an Open MPI tree only the component's configure.m4 counts.

# C dialect, warnings, visibility; --enable-werror; --enable-sanitizers=LIST.
AC_DEFUN([IBSHIFT_COMPILER_FLAGS], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
                  [], [enable_werror=no])
    AC_ARG_ENABLE([sanitizers],
                  [AS_HELP_STRING([--enable-sanitizers=LIST],
                                  [build all with -fsanitize=LIST, for example address,undefined])],
                  [], [enable_sanitizers=no])
    IBSHIFT_CFLAGS="-std=gnu11 -fvisibility=hidden -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wpointer-arith -Wno-unused-parameter"
    AS_IF([test "$enable_werror" = yes], [IBSHIFT_CFLAGS="$IBSHIFT_CFLAGS -Werror"])
    AS_CASE([$enable_sanitizers],
            [no], [],
            [yes], [AC_MSG_ERROR([--enable-sanitizers needs a list, for example address,undefined])],
            [IBSHIFT_CFLAGS="$IBSHIFT_CFLAGS -fsanitize=$enable_sanitizers -fno-sanitize-recover=all"
             IBSHIFT_CFLAGS="$IBSHIFT_CFLAGS -fno-omit-frame-pointer"
             LDFLAGS="$LDFLAGS -fsanitize=$enable_sanitizers"])
    AC_SUBST([IBSHIFT_CFLAGS])
])

# Open MPI with its internal headers: --with-ompi=PREFIX, else the mpicc on PATH; --without-ompi builds all but the component.
AC_DEFUN([IBSHIFT_CHECK_OMPI], [
    AC_ARG_WITH([ompi],
                [AS_HELP_STRING([--with-ompi=PREFIX],
                                [the Open MPI to build for (default: that of the mpicc on PATH); --without-ompi leaves the component out])],
                [], [with_ompi=yes])
    AC_ARG_WITH([ompi-source],
                [AS_HELP_STRING([--with-ompi-source=DIR],
                                [the unpacked source of that Open MPI, for the headers that its installation lacks])],
                [], [with_ompi_source=no])
    AC_ARG_WITH([component-dir],
                [AS_HELP_STRING([--with-component-dir=system|user|DIR],
                                [where make install puts the component: Open MPI's own component folder (system, the default), ~/.openmpi/components (user), or DIR])],
                [], [with_component_dir=system])
    AC_ARG_ENABLE([untested],
                  [AS_HELP_STRING([--enable-untested],
                                  [build for an Open MPI newer than 6.0 as well, as if it were 6.0])],
                  [], [enable_untested=no])
    AS_IF([test "$with_ompi" != no], [_IBSHIFT_FIND_OMPI])
    AM_CONDITIONAL([BUILD_COMPONENT], [test "$with_ompi" != no])
    AM_CONDITIONAL([MCA_BUILD_ompi_coll_ibshift_DSO], [true])
    AM_CONDITIONAL([IBSHIFT_IN_OMPI_TREE], [false])
    AC_SUBST([coll_ibshift_CPPFLAGS])
    AC_SUBST([coll_ibshift_LDFLAGS])
    AC_SUBST([coll_ibshift_LIBS])
    AC_SUBST([ompilibdir])
    AC_SUBST([ompidatadir])
    AC_SUBST([component_place])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([MPICC])
    AC_SUBST([MPIRUN])
    AC_SUBST([OMPI_VERSION])
])

AC_DEFUN([_IBSHIFT_FIND_OMPI], [
    AS_IF([test "$with_ompi" = yes],
          [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc])],
          [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$with_ompi/bin])])
    AS_IF([test -z "$MPICC"],
          [AC_MSG_ERROR([no Open MPI found (looked for mpicc in ${with_ompi}). Install openmpi-bin and libopenmpi-dev, or say --with-ompi=PREFIX, or --without-ompi for the tools alone])])
    ompi_bin=`AS_DIRNAME(["$MPICC"])`
    # The one beside mpicc, whatever its name: on PATH there may be another release's.
    AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$ompi_bin])
    AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [mpirun])
    AC_PATH_PROGS([OMPI_INFO], [ompi_info], [], [$ompi_bin:$PATH])
    AS_IF([test -z "$OMPI_INFO"],
          [AC_MSG_ERROR([$MPICC has no ompi_info beside it: it is not Open MPI's. Say --with-ompi=PREFIX])])
    OMPI_VERSION=`"$OMPI_INFO" --version | sed -n 's/^Open MPI v//p'`
    AS_CASE([$OMPI_VERSION:$enable_untested],
            [4.1.*|5.0.*|6.0.*], [],
            [[[0-5].*|:*]], [AC_MSG_ERROR([$MPICC is of Open MPI ${OMPI_VERSION:-an unknown version}, and the component is for 4.1, 5.0 and 6.0. --without-ompi builds the tools alone])],
            [*:yes], [AC_MSG_WARN([Open MPI $OMPI_VERSION is newer than 6.0, the last one that ibshift was tried with])],
            [AC_MSG_ERROR([$MPICC is of Open MPI $OMPI_VERSION, which is newer than 6.0, the last one that the component is for. --enable-untested tries it as if it were 6.0; --without-ompi builds the tools alone])])
    ompi_include=`"$OMPI_INFO" --path pkgincludedir --parsable | sed -n 's/^path:pkgincludedir://p'`
    ompi_pkglib=`"$OMPI_INFO" --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p'`
    ompi_lib=`"$OMPI_INFO" --path libdir --parsable | sed -n 's/^path:libdir://p'`
    ompi_data=`"$OMPI_INFO" --path pkgdatadir --parsable | sed -n 's/^path:pkgdatadir://p'`
    AC_MSG_CHECKING([for the devel headers of Open MPI $OMPI_VERSION])
    AS_IF([test -f "$ompi_include/ompi/mca/coll/coll.h"],
          [AC_MSG_RESULT([$ompi_include])],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([$ompi_include/ompi/mca/coll/coll.h is missing: this Open MPI was installed without its internal headers. Debian: install libopenmpi-dev. Own build: configure Open MPI with --with-devel-headers. Or put ompi/mca/coll/ibshift into Open MPI's source tree (docs/install.md)])])
    # ompi_info's libdir is the installation's; mpicc knows the -L that really links.
    # What an MPI program (test/mpi, bench/nbcbench) is built with.
    MPI_CFLAGS=`"$MPICC" --showme:compile`
    MPI_LIBS=`"$MPICC" --showme:link`
    # Open MPI's headers are not ours to warn about. The stand-in comes last: a full tree wins. Those of 5.0 include PMIx's.
    ibshift_headers="-isystem $ompi_include `"$MPICC" --showme:compile | sed 's/-I */-isystem /g'`"
    ibshift_pmix=`${PKG_CONFIG-pkg-config} --cflags-only-I pmix 2>/dev/null | sed 's/-I */-idirafter /g'`
    ibshift_stand_in="-idirafter `cd "$srcdir" && pwd`/config/stand-in"
    coll_ibshift_CPPFLAGS="$ibshift_headers $ibshift_pmix $ibshift_stand_in"
    # 5.0 installs no header of opal/mca/threads/pthreads, though its own include them.
    AC_MSG_CHECKING([whether they are complete])
    _IBSHIFT_TRY_HEADERS
    AC_MSG_RESULT([$ibshift_complete])
    AS_IF([test $ibshift_complete = no], [_IBSHIFT_TAKE_SOURCE])
    AS_IF([test "$enable_untested" = yes], [coll_ibshift_CPPFLAGS="$coll_ibshift_CPPFLAGS -DIBSHIFT_UNTESTED"])
    coll_ibshift_LDFLAGS="`"$MPICC" --showme:libdirs | sed 's/@<:@^ @:>@* */-L&/g'`"
    # From 6.0 on programs alone link libmpi, or libmpi_abi; what lies behind both is another library.
    AS_CASE([$OMPI_VERSION], [[[45].*]], [coll_ibshift_LIBS="-lmpi -lopen-pal"], [coll_ibshift_LIBS="-lopen_mpi -lopen-pal"])
    AS_CASE([$with_component_dir],
            [system|yes], [ompilibdir=$ompi_pkglib ompidatadir=$ompi_data component_place=system],
            [user], [ompilibdir=$HOME/.openmpi/components ompidatadir='${datadir}/openmpi' component_place=user
                     AS_IF([test "$prefix" = NONE], [prefix=$HOME/.local])],
            [/*|'${'*], [ompilibdir=$with_component_dir ompidatadir='${datadir}/openmpi' component_place=other],
            [AC_MSG_ERROR([--with-component-dir=$with_component_dir: say system, user or a folder from / on])])
])

# Into ibshift_complete. No branches as arguments: one that came here again would lose the saved flags.
AC_DEFUN([_IBSHIFT_TRY_HEADERS], [
    ibshift_saved_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $coll_ibshift_CPPFLAGS"
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "ompi_config.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/communicator/communicator.h"
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/accelerator/accelerator.h"
#endif]])], [ibshift_complete=yes], [ibshift_complete=no])
    CPPFLAGS=$ibshift_saved_CPPFLAGS
])

# Structs of Open MPI change between its releases, so that a component built with headers of one would do harm in another.
AC_DEFUN([IBSHIFT_CHECK_RELEASES], [
    AS_IF([test "$with_ompi" != no], [_IBSHIFT_FIT_TOGETHER])
])

AC_DEFUN([_IBSHIFT_FIT_TOGETHER], [
    AC_MSG_CHECKING([whether its headers and libraries are of one release])
    ibshift_saved_CC=$CC ibshift_saved_CPPFLAGS=$CPPFLAGS ibshift_saved_LIBS=$LIBS
    CC=$MPICC CPPFLAGS="$CPPFLAGS $coll_ibshift_CPPFLAGS" LIBS="$coll_ibshift_LDFLAGS $coll_ibshift_LIBS $LIBS"
    ibshift_idents=
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
#include <stdio.h>
extern const char ompi_version_string[];]], [[printf("%s %s", OMPI_IDENT_STRING, ompi_version_string)]])],
                   [ibshift_idents=`./conftest$EXEEXT 2>&AS_MESSAGE_LOG_FD`])
    CC=$ibshift_saved_CC CPPFLAGS=$ibshift_saved_CPPFLAGS LIBS=$ibshift_saved_LIBS
    ibshift_first=`AS_ECHO(["$ibshift_idents"]) | cut -d ' ' -f 1` ibshift_second=`AS_ECHO(["$ibshift_idents"]) | cut -d ' ' -f 2`
    AS_IF([test -z "$ibshift_idents"], [AC_MSG_RESULT([unknown: the component itself will look at its start])],
          [test "$ibshift_first" = "$ibshift_second"], [AC_MSG_RESULT([yes])],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([the headers in $ompi_include are of Open MPI $ibshift_first, the libraries that $MPICC links are of $ibshift_second: remove what is left of the other installation, or say --with-ompi=PREFIX])])
])

# Of the same release, since the headers of both must fit together.
AC_DEFUN([_IBSHIFT_TAKE_SOURCE], [
    AS_IF([test "$with_ompi_source" = no],
          [AC_MSG_ERROR([the internal headers of Open MPI $OMPI_VERSION in $ompi_include lack some that they include themselves (config.log names it). They are in its source: unpack that of the same release (Debian: apt-get source openmpi) and say --with-ompi-source=DIR; ./bootstrap does both. --without-ompi builds the tools alone])])
    AC_MSG_CHECKING([for them in $with_ompi_source])
    AS_IF([test ! -f "$with_ompi_source/VERSION"],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([--with-ompi-source=$with_ompi_source: no source of Open MPI, which has a file VERSION])])
    ompi_source=`cd "$with_ompi_source" && pwd`
    # "rc1" and the like follow the number without a dot.
    ompi_source_version=`sed -n 's/^\(major\|minor\|release\)=//p' "$ompi_source/VERSION" | paste -sd.``sed -n 's/^greek=//p' "$ompi_source/VERSION"`
    AS_IF([test "$ompi_source_version" != "$OMPI_VERSION"],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([--with-ompi-source=$with_ompi_source is the source of Open MPI $ompi_source_version, but $MPICC is of $OMPI_VERSION])])
    coll_ibshift_CPPFLAGS="$ibshift_headers $ibshift_pmix -idirafter $ompi_source -idirafter $ompi_source/opal/include $ibshift_stand_in"
    _IBSHIFT_TRY_HEADERS
    AC_MSG_RESULT([$ibshift_complete])
    AS_IF([test $ibshift_complete = no],
          [AC_MSG_ERROR([headers of Open MPI $OMPI_VERSION are missing in $ompi_include and in $ompi_source too (config.log names them)])])
])

AC_DEFUN([IBSHIFT_CHECK_VERBS], [
    AC_CHECK_HEADER([infiniband/verbs.h], [],
                    [AC_MSG_ERROR([infiniband/verbs.h is missing: install libibverbs-dev (rdma-core-devel elsewhere)])])
    AC_CHECK_LIB([ibverbs], [ibv_open_device], [VERBS_LIBS=-libverbs],
                 [AC_MSG_ERROR([libibverbs does not link: install libibverbs-dev])])
    # The youngest of the functions that the code cannot do without: rdma-core 32; ibv_query_ece is of 31.
    AC_CHECK_DECL([ibv_query_gid_table], [],
                  [AC_MSG_ERROR([libibverbs has no ibv_query_gid_table: it is older than rdma-core 32])],
                  [[#include <infiniband/verbs.h>]])
    # Multicast groups; what the code needs of it is of Linux 4.8.
    AC_CHECK_DECL([RDMA_MC_JOIN_FLAG_FULLMEMBER], [],
                  [AC_MSG_ERROR([rdma/rdma_user_cm.h is missing or older than Linux 4.8: install linux-libc-dev (kernel-headers elsewhere)])],
                  [[#include <rdma/rdma_user_cm.h>]])
    coll_ibshift_LIBS="$coll_ibshift_LIBS $VERBS_LIBS"
    AC_SUBST([VERBS_LIBS])
])

# The tool's live discovery of a fabric; without these libraries it reads files only.
AC_DEFUN([IBSHIFT_CHECK_IBNETDISC], [
    have_ibnetdisc=yes
    AC_CHECK_HEADERS([infiniband/ibnetdisc.h infiniband/mad.h infiniband/umad.h], [], [have_ibnetdisc=no])
    AS_IF([test $have_ibnetdisc = yes],
          [AC_CHECK_LIB([ibnetdisc], [ibnd_discover_fabric], [], [have_ibnetdisc=no], [-libmad -libumad])])
    AS_IF([test $have_ibnetdisc = yes], [IBNETDISC_LIBS="-libnetdisc -libmad -libumad"])
    AC_SUBST([IBNETDISC_LIBS])
    AM_CONDITIONAL([HAVE_IBNETDISC], [test $have_ibnetdisc = yes])
])

AC_DEFUN([IBSHIFT_CHECK_HWLOC], [
    PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [have_hwloc=yes], [have_hwloc=no])
    AS_IF([test $have_hwloc = no],
          [AC_MSG_ERROR([hwloc 2 is missing: install libhwloc-dev])])
    coll_ibshift_CPPFLAGS="$coll_ibshift_CPPFLAGS $HWLOC_CFLAGS"
    coll_ibshift_LIBS="$coll_ibshift_LIBS $HWLOC_LIBS"
])

AC_DEFUN([IBSHIFT_CHECK_CMOCKA], [
    PKG_CHECK_MODULES([CMOCKA], [cmocka], [have_cmocka=yes], [have_cmocka=no])
    AM_CONDITIONAL([HAVE_CMOCKA], [test $have_cmocka = yes])
])

AC_DEFUN([IBSHIFT_SUMMARY], [
    AS_ECHO([""])
    AS_ECHO(["ibshift $PACKAGE_VERSION"])
    AS_IF([test "$with_ompi" != no],
          [AS_ECHO(["  Open MPI          $OMPI_VERSION ($MPICC)"])
           AS_ECHO(["  component goes to $ompilibdir"])],
          [AS_ECHO(["  Open MPI          left out (--without-ompi)"])])
    AS_ECHO(["  live discovery    $have_ibnetdisc"])
    AS_ECHO(["  unit tests        $have_cmocka"])
])
