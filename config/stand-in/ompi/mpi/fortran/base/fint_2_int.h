#ifndef IBSHIFT_STAND_IN_FINT_2_INT_H
#define IBSHIFT_STAND_IN_FINT_2_INT_H

/*
 * Open MPI's devel headers include this file of the Fortran bindings but do not install it.
 * The component converts no Fortran integer; the names need a meaning for the headers to compile.
 */
#if OMPI_SIZEOF_FORTRAN_INTEGER != SIZEOF_INT
#error "a Fortran INTEGER is no C int here: build ibshift inside the Open MPI source tree"
#endif

#define OMPI_INT_2_FINT(a) a
#define OMPI_FINT_2_INT(a) a

#endif
