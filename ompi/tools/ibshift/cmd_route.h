#ifndef IBSHIFT_CMD_ROUTE_H
#define IBSHIFT_CMD_ROUTE_H

int cmd_route(int argc, char **argv);

#endif
