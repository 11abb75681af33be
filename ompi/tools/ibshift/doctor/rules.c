/* The programs of test/verbs, each of which checks one rule of the verbs on the device. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "doctor/doctor.h"

enum { SKIPPED = 77, LIMIT = 30 /* s */ };

static int is_program(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strchr(entry->d_name, '.') == NULL;
}

/* Its exit code; 1 when it was ended. */
static int run(const struct doctor *d, const char *path)
{
    char number[16];
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        snprintf(number, sizeof(number), "%u", d->port.number);
        setenv("IBSHIFT_VERBS_DEVICE", d->port.name, 1);
        setenv("IBSHIFT_VERBS_PORT", number, 1);
        if (freopen("/dev/null", "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL) {
            _exit(SKIPPED);
        }
        alarm(LIMIT);
        execl(path, path, (char *)NULL);
        _exit(SKIPPED);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return SKIPPED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int doctor_rules(struct doctor *d, const char *folder)
{
    struct dirent **found;
    int n = scandir(folder, &found, is_program, alphasort), passed = 0, skipped = 0, failed = 0;
    char names[DOCTOR_TEXT / 2] = "";

    if (n < 0) {
        return cli_error("doctor", "--rules '%s': %s", folder, strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0) {
            int code = run(d, path);
            size_t at = strlen(names);
            passed += code == 0;
            skipped += code == SKIPPED;
            failed += code != 0 && code != SKIPPED;
            if (code != 0 && code != SKIPPED) {
                snprintf(names + at, sizeof(names) - at, " %.60s", found[i]->d_name);
            }
        }
        free(found[i]);
    }
    free(found);
    if (passed + skipped + failed == 0) {
        return cli_error("doctor", "--rules '%s': no programs there: make -C test/verbs check",
                         folder);
    }
    doctor_say(d, failed > 0 ? DOCTOR_NOTE : DOCTOR_FACT, "rules",
               "%d hold, %d not asked, %d not%s%s", passed, skipped, failed, failed > 0 ? ":" : "",
               names);
    return CLI_OK;
}
