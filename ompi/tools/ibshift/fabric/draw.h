/* Pictures of fabrics: where the switches stand, then cables coloured by load, then the switches on
 * top. */
#ifndef IBSHIFT_FABRIC_DRAW_H
#define IBSHIFT_FABRIC_DRAW_H

#include "fabric/shape/shape.h"
#include "draw/svg.h"

struct fabric_picture {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    const double *load;   /* by directed link (fabric/paths/load.h), or NULL: no tables */
    struct svg_point *at; /* by switch */
    double width, height; /* of the field of switches and hosts, below the title */
    double box;           /* half the width of a switch */
    double line;          /* width of a cable */
    double level_step;    /* between the levels of a tree */
};

/* Places the switches; at[] has switch_count elements. */
void fabric_draw_place(struct fabric_picture *picture);
/* The whole picture with title and legend. */
void fabric_draw_write(FILE *out, const struct fabric_picture *picture, const char *title,
                       const char *subtitle);

#endif
