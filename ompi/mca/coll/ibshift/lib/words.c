#include <string.h>

#include "lib/private.h"

/* Nothing grows. The first that fits is taken. The library writes no trace. */
static const struct {
    const char *mpi, *own;
} words[] = {
    {"--------------------------------------------------------------------------\n", ""},
    {"The MCA parameter coll_ibshift_trace records each step with its\n"
     "collective and the number above.\n",
     ""},
    {"Collectives of communicators with this process run in the other components.",
     "Without it only processes of one host reach each other."},
    {"run in other components", "return ENOTSUP"},
    {"\"ompi_info --param coll ibshift --level 9\"", "coll_ibshift(7)"},
    {"MCA parameter coll_ibshift_", "option "},
    {"MCA parameter", "option"},
    {"coll_ibshift_", "option "},
    {"on communicator group ", "of group "},
    {"on communicator ", "of group "},
    {"Communicator: ", "Where:        "},
    {"communicator", "group"},
};

void ibshift_lib_words(char *text)
{
    char *to = text;

    while (*text != '\0') {
        size_t i = 0, count = sizeof(words) / sizeof(words[0]);

        while (i < count && strncmp(text, words[i].mpi, strlen(words[i].mpi)) != 0) {
            i++;
        }
        if (i < count) {
            memcpy(to, words[i].own, strlen(words[i].own));
            to += strlen(words[i].own);
            text += strlen(words[i].mpi);
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}
