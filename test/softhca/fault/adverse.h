/* Adversarial mode: what the specification allows and programs like to forget. */
#ifndef SOFTHCA_ADVERSE_H
#define SOFTHCA_ADVERSE_H

#include <stdbool.h>

#include "run/copy.h"

/* Copies a tail of random length only. */
int adverse_copy_tail(const struct pieces *from, const struct pieces *to);
/* Fills a buffer whose content is undefined by now. */
int adverse_scramble(const struct pieces *to);
/* Fills the fields of a completion that are undefined; those of an error in every mode. */
void adverse_scramble_cqe(struct shm_cqe *e);

#endif
