# MCA_ompi_coll_ibshift_CONFIG([build it], [leave it out])
# Inside an Open MPI source tree (4.1, 5.0 or 6.0) only; config/ibshift.m4 serves the build outside of one.
AC_DEFUN([MCA_ompi_coll_ibshift_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/coll/ibshift/Makefile])

    # _ibv_query_gid_table came with rdma-core 32, the oldest that will do.
    # 5.0 brings OAC_CHECK_PACKAGE, 4.1 OPAL_CHECK_PACKAGE, with the arguments in another order.
    m4_ifdef([OAC_CHECK_PACKAGE],
             [OAC_CHECK_PACKAGE([ibverbs], [coll_ibshift], [infiniband/verbs.h], [ibverbs],
                                [_ibv_query_gid_table], [coll_ibshift_happy=yes], [coll_ibshift_happy=no])],
             [AC_ARG_WITH([verbs], [AS_HELP_STRING([--with-verbs(=DIR)], [where the verbs library is])])
              OPAL_CHECK_PACKAGE([coll_ibshift], [infiniband/verbs.h], [ibverbs], [_ibv_query_gid_table], [],
                                 [], [], [coll_ibshift_happy=yes], [coll_ibshift_happy=no])])

    # Multicast groups; what the code needs of it is of Linux 4.8.
    AC_CHECK_DECL([RDMA_MC_JOIN_FLAG_FULLMEMBER], [],
                  [AC_MSG_WARN([coll/ibshift: rdma/rdma_user_cm.h is missing or older than Linux 4.8: install linux-libc-dev (kernel-headers elsewhere)])
                   coll_ibshift_happy=no],
                  [[#include <rdma/rdma_user_cm.h>]])

    AS_IF([test "$coll_ibshift_happy" = yes],
          [coll_ibshift_WRAPPER_EXTRA_LDFLAGS="$coll_ibshift_LDFLAGS"
           coll_ibshift_WRAPPER_EXTRA_LIBS="$coll_ibshift_LIBS"
           $1],
          [$2])

    # What lies behind libmpi, and from 6.0 on libmpi_abi too, is a library of its own there.
    AS_IF([test "$OMPI_MAJOR_VERSION" -ge 6], [coll_ibshift_library=open_mpi], [coll_ibshift_library=$OMPI_LIBMPI_NAME])
    AC_SUBST([coll_ibshift_library])
    AC_SUBST([coll_ibshift_CPPFLAGS])
    AC_SUBST([coll_ibshift_LDFLAGS])
    AC_SUBST([coll_ibshift_LIBS])
])dnl

AC_DEFUN([MCA_ompi_coll_ibshift_POST_CONFIG], [
    AM_CONDITIONAL([BUILD_COMPONENT], [true])
    AM_CONDITIONAL([IBSHIFT_IN_OMPI_TREE], [true])
])dnl
