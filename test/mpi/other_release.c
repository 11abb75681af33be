/* Preloaded into a program, it makes Open MPI's library say that it is another release. */

extern const char ompi_version_string[];

__attribute__((visibility("default"))) const char ompi_version_string[] = "4.1.99";
