#include "versions.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <uv.h>

const char *bc_library_version(int index, char *version, size_t size)
{
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    switch (index) {
    case 0:
        snprintf(version, size, "%s, %s", curl->version,
                 curl->ssl_version != NULL ? curl->ssl_version : "without TLS");
        return "libcurl";
    case 1: snprintf(version, size, "%s", uv_version_string()); return "libuv";
    case 2: snprintf(version, size, "%s", jansson_version_str()); return "jansson";
    default: return NULL;
    }
}
