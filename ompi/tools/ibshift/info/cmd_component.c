/* The component as Open MPI itself sees it: its ompi_info is asked, so that values from files,
 * environment and defaults are those that a job would get. */
#include "info/cmd.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char prefix[] = "mca:coll:ibshift:";

/* Its output to read from, or NULL. */
static FILE *run(const char *program, pid_t *pid)
{
    const char *const argv[] = {program,   "--param", "coll",       "ibshift",
                                "--level", "9",       "--parsable", NULL};
    posix_spawn_file_actions_t actions;
    FILE *file = NULL;
    int ends[2], rc;

    if (pipe(ends) != 0) {
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    rc = posix_spawn(pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc == 0) {
        file = fdopen(ends[0], "r");
    }
    if (file == NULL) {
        close(ends[0]);
        errno = rc != 0 ? rc : errno;
    }
    return file;
}

static struct info_param *param_named(struct info_component *c, const char *name, size_t length)
{
    for (int i = 0; i < c->count; i++) {
        if (strncmp(c->params[i].name, name, length) == 0 && c->params[i].name[length] == '\0') {
            return &c->params[i];
        }
    }
    if (c->count == INFO_PARAMS) {
        return NULL;
    }
    c->params[c->count] = (struct info_param){.name = strndup(name, length)};
    return c->params[c->count].name != NULL ? &c->params[c->count++] : NULL;
}

static void set_text(char **text, const char *from)
{
    size_t length = strlen(from);

    if (length >= 2 && from[0] == '"' && from[length - 1] == '"') {
        from++;
        length -= 2;
    }
    free(*text);
    *text = strndup(from, length);
}

/* mca:coll:ibshift:param:NAME:value:VALUE, or :source:SOURCE */
static void take_line(struct info_component *c, const char *line)
{
    const char *name, *key;
    struct info_param *param;

    if (strncmp(line, prefix, sizeof(prefix) - 1) != 0) {
        return;
    }
    c->is_found = true;
    line += sizeof(prefix) - 1;
    if (strncmp(line, "param:", 6) != 0) {
        return;
    }
    name = line + 6;
    key = strchr(name, ':');
    if (key == NULL) {
        return;
    }
    if (strncmp(key, ":value:", 7) == 0) {
        param = param_named(c, name, (size_t)(key - name));
        if (param != NULL) {
            set_text(&param->value, key + 7);
        }
    } else if (strncmp(key, ":source:", 8) == 0) {
        param = param_named(c, name, (size_t)(key - name));
        if (param != NULL) {
            set_text(&param->source, key + 8);
        }
    }
}

static int ask(struct info_component *c)
{
    char *line = NULL;
    size_t room = 0;
    pid_t pid = -1;
    FILE *file = run(c->program, &pid);

    if (file == NULL) {
        return -errno;
    }
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(c, line);
    }
    free(line);
    fclose(file);
    (void)waitpid(pid, NULL, 0);
    return 0;
}

/* Adds the folder to where Open MPI looks, for this process and what it starts. */
static void add_folder(const struct info_component *c)
{
    const char *old = getenv("OMPI_MCA_mca_base_component_path");
    char *path;

    if (asprintf(&path, "%s:%s", c->folder, old != NULL && *old != '\0' ? old : "SYS_DEFAULT") >=
        0) {
        setenv("OMPI_MCA_mca_base_component_path", path, 1);
        free(path);
    }
}

int info_component_find(struct info_component *c)
{
    char *file;
    int rc;

    if (c->program[0] == '\0') {
        return 0;
    }
    if (asprintf(&file, "%s/mca_coll_ibshift.so", c->folder) >= 0) {
        c->is_file = access(file, R_OK) == 0;
        free(file);
    }
    rc = ask(c);
    if (rc == 0 && !c->is_found && c->is_file) {
        add_folder(c);
        rc = ask(c);
        c->needs_path = c->is_found;
    }
    return rc;
}

void info_component_free(struct info_component *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->params[i].name);
        free(c->params[i].value);
        free(c->params[i].source);
    }
}

const char *info_param(const struct info_component *c, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        const struct info_param *param = &c->params[i];

        if (strncmp(param->name, "coll_ibshift_", 13) == 0 && strcmp(param->name + 13, name) == 0) {
            return param->value != NULL ? param->value : "";
        }
    }
    return "";
}
