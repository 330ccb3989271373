// Every folder: the declarations of all kernels.
#pragma once

#include "kernels/accumulate/accumulate.h"
#include "kernels/activation/activation.h"
#include "kernels/attention/attention.h"
#include "kernels/conv/conv.h"
#include "kernels/dropout/dropout.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/layout_transform/layout_transform.h"
#include "kernels/linear/linear.h"
#include "kernels/loss/loss.h"
#include "kernels/mesa/mesa.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pooling/pooling.h"
#include "kernels/rope/rope.h"
#include "kernels/softmax/softmax.h"
