/* The public C API of the core: everything but the Lua engine (barchan/engine.h). */
#ifndef BARCHAN_BARCHAN_H
#define BARCHAN_BARCHAN_H

#include <barchan/apply.h>
#include <barchan/detached.h>
#include <barchan/error.h>
#include <barchan/exec.h>
#include <barchan/files.h>
#include <barchan/model.h>
#include <barchan/network.h>
#include <barchan/runtime.h>
#include <barchan/sandbox.h>
#include <barchan/secret.h>
#include <barchan/template.h>

#endif
