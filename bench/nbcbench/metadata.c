/* What a reader of the numbers wants to know about the run. */
#include "nbcbench.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "json.h"

enum { TEXT = 512 };

static FILE *out;
static struct json *json; /* NULL: lines of text */

/* One line of text, whatever comes. */
static void add(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(const char *key, const char *format, ...)
{
    char text[TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    if (json != NULL) {
        json_text(json, key, text);
    } else {
        fprintf(out, "# %s: %s\n", key, text);
    }
}

static void add_time(const char *key, const char *before, time_t when)
{
    char text[32];
    struct tm utc;

    (void)gmtime_r(&when, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    add(key, "%s%s", before, text);
}

static void append(char *line, const char *separator, const char *word)
{
    size_t used = strlen(line);

    snprintf(line + used, TEXT - used, "%s%s", used > 0 ? separator : "", word);
}

static void add_machine(void)
{
    char text[TEXT] = "", *colon;
    struct utsname name;
    FILE *file = fopen("/proc/cpuinfo", "r");

    if (uname(&name) == 0) {
        add("host", "%s", name.nodename);
        add("kernel", "%s", name.release);
    }
    while (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        colon = strchr(text, ':');
        if (strncmp(text, "model name", 10) == 0 && colon != NULL) {
            add("processor", "%s", colon + 2);
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
        if (d->d_name[0] != '.') {
            append(names, ",", d->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    add("devices", "%s", names[0] != '\0' ? names : "none in /sys/class/infiniband");
}

/* Whatever mpirun's --mca or the environment set; mpirun passes some that only its daemons read. */
static void add_parameters(void)
{
    static const char *const prefixes[] = {"OMPI_MCA_coll", "OMPI_MCA_btl", "OMPI_MCA_pml", "UCX_"};
    extern char **environ;

    for (char **variable = environ; *variable != NULL; variable++) {
        const char *value = strchr(*variable, '=');
        char key[64];

        for (size_t i = 0; value != NULL && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
            if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0) {
                snprintf(key, sizeof(key), "%.*s", (int)(value - *variable), *variable);
                add(key, "%s", value + 1);
            }
        }
    }
}

static void add_fabric(void)
{
    const char *path = getenv("OMPI_MCA_coll_ibshift_fabric");
    char before[TEXT];
    struct stat status;

    if (path != NULL && path[0] != '\0' && stat(path, &status) == 0) {
        snprintf(before, sizeof(before), "%s, %lld bytes, of ", path, (long long)status.st_size);
        add_time("fabric_file", before, status.st_mtime);
    }
}

/* Rank 0 asks for its own host only: nobody else has to be called. */
struct host_load metadata_load(void)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    struct host_load host = {.processors = sysconf(_SC_NPROCESSORS_ONLN)};
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    host.processors = host.processors > 0 ? host.processors : 1;
    (void)getloadavg(&host.load, 1);
    host.crowd = (double)(local != NULL ? atoi(local) : ranks) / (double)host.processors;
    return host;
}

void metadata_write(FILE *file, struct json *object, const struct options *o)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], command[TEXT] = "";
    struct host_load host = metadata_load();
    int length, ranks;

    out = file;
    json = object;
    MPI_Get_library_version(library, &length);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < o->argc; i++) {
        append(command, " ", o->argv[i]);
    }
    add_time("time", "", time(NULL));
    add("nbcbench", "%s", PACKAGE_VERSION);
    add("mpi", "%s", library);
    add("ranks", "%d", ranks);
    add("command", "%s", command);
    add("start", "%s", o->barrier ? "behind a barrier" : "by the clock");
    add_machine();
    add("processors", "%ld", host.processors);
    add("load", "%.2f", host.load);
    add_devices();
    add_parameters();
    add_fabric();
}
