/* What went wrong, in words, for the thread that it went wrong for. */

#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static _Thread_local char text[512];
static _Thread_local int64_t told; /* the code that the text belongs to */
static _Thread_local bool is_new;  /* it was told in the call of the program that goes on */

const char *sb_detail(int64_t code)
{
    return code == told ? text : "";
}

void detail_forget(void)
{
    told = SB_OK;
}

int64_t sb_answered(int64_t code)
{
    if (code < 0 && !(is_new && code == told))
        told = SB_OK;
    is_new = false;
    return code;
}

int64_t sb_detail_take(int64_t code, char *buffer, int64_t capacity)
{
    if (capacity > 0)
        buffer[0] = 0;
    if (code != told || capacity <= 0)
        return 0;
    told = SB_OK;
    return snprintf(buffer, (size_t)capacity, "%s", text);
}

int64_t fail(int64_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    is_new = true;
    return told = code;
}

int64_t fail_system(const char *format, ...)
{
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, ": %s%s", strerror(error),
                 error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
    errno = error;
    is_new = true;
    return told = error == ENOSPC ? SB_NO_MEMORY : SB_SYSTEM;
}
