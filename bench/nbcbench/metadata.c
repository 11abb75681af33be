/* What a reader of the numbers wants to know about the run. */
#include "report.h"

#include "json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, TEXT = 512 };

struct entry {
    char key[64], value[TEXT];
};

static struct entry entries[MOST];
static int count;
static double load, crowd;

static void add(const char *key, const char *value)
{
    if (count < MOST) {
        struct entry *e = &entries[count++];

        snprintf(e->key, sizeof(e->key), "%s", key);
        snprintf(e->value, sizeof(e->value), "%.*s", (int)strcspn(value, "\n"), value);
    }
}

static void add_command(int argc, char **argv)
{
    char line[TEXT] = "";

    for (int i = 0; i < argc; i++) {
        size_t used = strlen(line);

        snprintf(line + used, sizeof(line) - used, "%s%s", i > 0 ? " " : "", argv[i]);
    }
    add("command", line);
}

static void add_machine(void)
{
    char text[TEXT] = "unknown", *colon;
    struct utsname name;
    FILE *file = fopen("/proc/cpuinfo", "r");

    if (uname(&name) == 0) {
        add("host", name.nodename);
        add("kernel", name.release);
    }
    while (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        colon = strchr(text, ':');
        if (strncmp(text, "model name", 10) == 0 && colon != NULL) {
            add("processor", colon + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* As the kernel has them; a device of another kind, such as the software HCA's, is not there. */
static void add_devices(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    char names[TEXT] = "";
    struct dirent *d;

    while (folder != NULL && (d = readdir(folder)) != NULL) {
        size_t used = strlen(names);

        if (d->d_name[0] != '.') {
            snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? "," : "", d->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    add("devices", names[0] != '\0' ? names : "none in /sys/class/infiniband");
}

/* Whatever mpirun's --mca or the environment set; mpirun passes some that only its daemons read. */
static void add_parameters(void)
{
    extern char **environ;

    for (char **variable = environ; *variable != NULL; variable++) {
        const char *name = *variable, *value = strchr(name, '=');
        char key[64];

        if (value == NULL ||
            (strncmp(name, "OMPI_MCA_coll", 13) != 0 && strncmp(name, "OMPI_MCA_btl", 12) != 0 &&
             strncmp(name, "OMPI_MCA_pml", 12) != 0 && strncmp(name, "UCX_", 4) != 0)) {
            continue;
        }
        snprintf(key, sizeof(key), "%.*s", (int)(value - name), name);
        add(key, value + 1);
    }
}

static void add_fabric(void)
{
    const char *path = getenv("OMPI_MCA_coll_ibshift_fabric");
    char text[TEXT], when[32];
    struct stat status;
    struct tm utc;

    if (path == NULL || path[0] == '\0' || stat(path, &status) != 0) {
        return;
    }
    (void)gmtime_r(&status.st_mtime, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(text, sizeof(text), "%s, %lld bytes, of %s", path, (long long)status.st_size, when);
    add("fabric_file", text);
}

/* Rank 0 asks for its own host only: nobody else has to be called. */
static void look_at_host(int ranks)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    double loads[1] = {0};
    char text[TEXT];

    processors = processors > 0 ? processors : 1;
    if (getloadavg(loads, 1) == 1) {
        load = loads[0] / (double)processors;
    }
    crowd = (double)(local != NULL ? atoi(local) : ranks) / (double)processors;
    snprintf(text, sizeof(text), "%ld", processors);
    add("processors", text);
    snprintf(text, sizeof(text), "%.2f", loads[0]);
    add("load", text);
}

void metadata_collect(const struct options *o, int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    time_t now = time(NULL);
    int length, ranks;
    struct tm utc;

    count = 0;
    (void)gmtime_r(&now, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    add("time", text);
    add("nbcbench", PACKAGE_VERSION);
    MPI_Get_library_version(text, &length);
    add("mpi", text);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(text, sizeof(text), "%d", ranks);
    add("ranks", text);
    add_command(argc, argv);
    add("start", o->barrier ? "behind a barrier" : "by the clock");
    add_machine();
    look_at_host(ranks);
    add_devices();
    add_parameters();
    add_fabric();
}

void metadata_write(FILE *file, struct json *json)
{
    for (int i = 0; i < count; i++) {
        if (json != NULL) {
            json_text(json, entries[i].key, entries[i].value);
        } else {
            fprintf(file, "# %s: %s\n", entries[i].key, entries[i].value);
        }
    }
}

double metadata_load(void)
{
    return load;
}

double metadata_crowd(void)
{
    return crowd;
}
