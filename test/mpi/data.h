#ifndef IBSHIFT_TEST_MPI_DATA_H
#define IBSHIFT_TEST_MPI_DATA_H

#include <mpi.h>
#include <stddef.h>

/* Elements of a few words, with or without gaps. */
enum layout_kind { LAYOUT_INT, LAYOUT_GAPS, LAYOUT_NEGATIVE, LAYOUT_COUNT };

struct layout {
    const char *name;
    MPI_Datatype type;
    int words;     /* data words of an element */
    int offset[2]; /* where they are */
    int stride;    /* words from one element to the next */
};

struct layout layout_create(enum layout_kind kind);
void layout_free(struct layout *layout);

/* The word that a rank contributes at an index; salt tells one call from the next. */
int value_of(int rank, size_t index, unsigned salt);

/* Associative and not commutative, on every word of every element of the layout in use: a word is an
   affine function modulo 251. */
MPI_Op compose_op(const struct layout *layout);

#endif
