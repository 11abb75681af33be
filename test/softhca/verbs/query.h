#ifndef SOFTHCA_QUERY_H
#define SOFTHCA_QUERY_H

#include <infiniband/verbs.h>

int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size);
int query_port(struct ibv_context *ctx, uint8_t num, struct ibv_port_attr *attr, size_t size);
int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);

#endif
