#include "tune/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "choose/tuned.h"
#include "options.h"

enum { PATH = 4096 };

static const double too_noisy = 0.15;

const char *const tune_level_names[] = {[TUNE_FABRIC] = "fabric", [TUNE_NODE] = "node"};

/* The file that jobs find; false: a line says why there is no such place. */
static bool installed(const struct tune_target *to, const struct ibshift_made *made, char *path,
                      size_t size)
{
    const char *site = getenv("OMPI_MCA_coll_ibshift_site");
    char folder[PATH], name[4 * IBSHIFT_MADE_TEXT];

    snprintf(folder, sizeof(folder), "%s", site != NULL && site[0] != '\0' ? site : "/etc/ibshift");
    if (to->install == TUNE_INSTALL_USER && !ibshift_tuned_folder(folder, sizeof(folder))) {
        cli_error("tune", "--install user: HOME is not set, so there is no folder ~/.ibshift");
        return false;
    }
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        cli_error("tune", "--install: cannot make %s: %s", folder, strerror(errno));
        return false;
    }
    ibshift_tuned_name(made, name, sizeof(name));
    return (size_t)snprintf(path, size, "%s/%s", folder, name) < size;
}

static int put(const char *path, const char *text)
{
    struct output out;
    int rc = cli_output_open("tune", path, &out);

    if (rc == CLI_OK) {
        (void)fputs(text, out.file);
        rc = cli_output_close("tune", path, &out, rc);
    }
    if (rc == CLI_OK && strcmp(path, "-") != 0) {
        fprintf(stderr, "ibshift tune: written: %s\n", path);
    }
    return rc;
}

/* What was measured in a minute goes to one place though the other takes no file. */
static int deliver(const struct tune_target *to, const struct tune_found *found)
{
    char *text = tune_report(found), path[2 * PATH];
    int rc = CLI_OK;

    if (text == NULL) {
        cli_error("tune", "out of memory");
        return CLI_FAILED;
    }
    if (to->output != NULL || to->install == TUNE_INSTALL_NOT) {
        rc = put(to->output != NULL ? to->output : "-", text);
    }
    if (to->install != TUNE_INSTALL_NOT &&
        (!installed(to, &found->made, path, sizeof(path)) || put(path, text) != CLI_OK)) {
        rc = CLI_USAGE;
    }
    free(text);
    return rc;
}

int tune_check_place(const struct tune_target *to, const struct ibshift_made *made)
{
    char path[2 * PATH];

    if (to->install == TUNE_INSTALL_NOT) {
        return CLI_OK;
    }
    return installed(to, made, path, sizeof(path)) ? cli_check_output("tune", path, NULL)
                                                   : CLI_USAGE;
}

int tune_judge(const struct tune_target *to, struct tune_found *found, struct ibshift_model *local)
{
    bool is_noisy = false, is_any = false;

    for (int level = 0; level < TUNE_LEVELS; level++) {
        struct tune_level_found *one = &found->level[level];

        if (!one->is_there) {
            fprintf(stderr, "ibshift tune: %s is not measured: %s\n", tune_level_names[level],
                    one->how);
            continue;
        }
        is_any = true;
        local->at_once = (double)one->eager;
        local->wake = level == TUNE_NODE ? ibshift_model_node.wake
                      : one->is_moved    ? ibshift_model_software.wake
                                         : ibshift_model_typical.wake;
        if (!tune_found(one, local)) {
            cli_error("tune", "%s: the times make no sense; is the machine busy?",
                      tune_level_names[level]);
            return CLI_FAILED;
        }
        if (one->noise > too_noisy) {
            is_noisy = true;
            fprintf(stderr,
                    "ibshift tune: %s: too noisy: the passes differ by %.0f %%. Leave the machine "
                    "alone, or measure longer (--time)%s\n",
                    tune_level_names[level], one->noise * 100,
                    to->is_forced ? "" : "; nothing is written (--force writes all the same)");
        }
    }
    if (!is_any) {
        cli_error("tune", "no level could be measured: start at least two ranks, on one host or on "
                          "hosts with an adapter; ranks that have a partner said above what is "
                          "missing");
        return CLI_UNFIT;
    }
    return is_noisy && !to->is_forced ? CLI_FAILED : deliver(to, found);
}
