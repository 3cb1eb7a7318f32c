#include "charset.h"

#include <string.h>
#include "egress/secret.h"

/* Whether the charset at `text` is known to write ASCII as ASCII: "UTF-8", "csISOLatin1", … What is
 * not could be of EBCDIC's family, of UTF-16's, or UTF-7. */
static bool is_like_ascii(const char *text, size_t len)
{
    static const char *const known[] = {
        "utf8",       "ascii",      "usascii",    "ansix34",    "iso8859",   "isolatin",  "latin",
        "windows125", "windows31j", "windows874", "windows93",  "windows94", "windows95", "cp125",
        "cp437",      "cp85",       "cp86",       "cp874",      "cp932",     "cp936",     "cp949",
        "cp950",      "ibm437",     "ibm85",      "ibm86",      "koi8",      "gb2312",    "gbk",
        "gb18030",    "big5",       "euc",        "shiftjis",   "sjis",      "ms932",     "ksc5601",
        "iso2022",    "tis620",     "mac",        "userdefined"};
    char name[24];
    size_t n = 0;
    for (size_t i = 0; i < len && text[i] != ';' && text[i] != ',' && n < sizeof name - 1; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) name[n++] = c;
    }
    name[n] = '\0';
    size_t skip = name[0] == 'x' ? 1 : strncmp(name, "cs", 2) == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(name + skip, known[i], strlen(known[i])) == 0) return true;
    }
    return n == 0;
}

bool bc_charset_is_like_ascii(const char *type, size_t len)
{
    static const char word[] = "charset";
    const size_t n = sizeof word - 1;
    for (size_t i = 0; i + n < len; i++) {
        if (bc_same_word(type + i, n, word) && !is_like_ascii(type + i + n, len - i - n))
            return false;
    }
    return true;
}
