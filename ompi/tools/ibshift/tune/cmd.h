/* `ibshift tune`: starts the program ibshift-tune, which needs Open MPI. */
#ifndef IBSHIFT_TUNE_CMD_H
#define IBSHIFT_TUNE_CMD_H

int cmd_tune(int argc, char **argv);

#endif
