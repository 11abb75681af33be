#ifndef IBSHIFT_ROUTE_CMD_H
#define IBSHIFT_ROUTE_CMD_H

int cmd_route(int argc, char **argv);

#endif
