#include "charset.h"

#include <string.h>
#include "egress/secret.h"

/* Without what is neither a letter nor a digit; '#' stands for digits at the end, or none. Not
 * cp864 and the JIS X 0213 ones, in which some of ASCII's characters are others. */
static const char *const known[] = {
    "utf8",       "ascii",      "usascii",    "ansix34#",    "iso646us",    "us",
    "iso8859#",   "isolatin#",  "latin#",     "windows125#", "windows31j",  "windows874",
    "windows932", "windows936", "windows949", "windows950",  "cp125#",      "cp437",
    "cp850",      "cp852",      "cp855",      "cp857",       "cp858",       "cp860",
    "cp861",      "cp862",      "cp863",      "cp865",       "cp866",       "cp869",
    "cp874",      "cp932",      "cp936",      "cp949",       "cp950",       "ibm437",
    "ibm850",     "ibm852",     "ibm855",     "ibm857",      "ibm858",      "ibm860",
    "ibm861",     "ibm862",     "ibm863",     "ibm865",      "ibm866",      "ibm869",
    "koi8",       "koi8r",      "koi8u",      "gb2312",      "gbk",         "gb18030",
    "big5",       "big5hkscs",  "eucjp",      "euckr",       "euccn",       "euctw",
    "shiftjis",   "sjis",       "ms932",      "ksc5601#",    "iso2022jp",   "iso2022kr",
    "iso2022cn",  "tis620",     "macintosh",  "macroman",    "maccyrillic", "userdefined"};

static bool is_name(const char *name, const char *pattern)
{
    size_t n = strcspn(pattern, "#");
    if (strncmp(name, pattern, n) != 0) return false;
    return name[n + (pattern[n] == '#' ? strspn(name + n, "0123456789") : 0)] == '\0';
}

/* Whether the charset at `text` is known to write ASCII as ASCII: "UTF-8", "csISOLatin1", … What is
 * not could be of EBCDIC's family, of UTF-16's, or UTF-7. */
static bool is_like_ascii(const char *text, size_t len)
{
    char name[32];
    size_t n = 0;
    bool names_none = true;
    for (size_t i = 0; i < len && text[i] != ';'; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (text[i] == ',' || n == sizeof name - 1) return false;
        if (strchr("=\" \t", c) == NULL) names_none = false;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) name[n++] = c;
    }
    name[n] = '\0';
    size_t skip = name[0] == 'x' ? 1 : strncmp(name, "cs", 2) == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (is_name(name + skip, known[i])) return true;
    }
    return names_none;
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
