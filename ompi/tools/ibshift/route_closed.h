/* The closed form that the engines pgft and qft share. */
#ifndef IBSHIFT_TOOL_ROUTE_CLOSED_H
#define IBSHIFT_TOOL_ROUTE_CLOSED_H

#include "route.h"
#include "route_tree.h"

/* Fills the tables for the LIDs of all hosts, and the order. */
int route_closed_form(route_t *r, const route_tree_t *t, ibshift_error_t *err);

#endif
