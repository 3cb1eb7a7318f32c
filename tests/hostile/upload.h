/* The hostile program, put into the sandbox as ./probe. */
#ifndef TESTS_HOSTILE_UPLOAD_H
#define TESTS_HOSTILE_UPLOAD_H

void upload_probe(void);

#endif
