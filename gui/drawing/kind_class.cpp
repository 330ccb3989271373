// The class of every op kind, in one switch.
#include "gui/drawing/kind_class.h"

namespace tidemark::gui {

KindClass class_of(OpKind kind) {
  using enum OpKind;
  switch (kind) {
    case Linear:
    case MatMul:
    case Conv2d:
      return KindClass::Matrix;
    case FlashAttention:
    case Softmax:
    case Rope:
    case RepeatHeads:
      return KindClass::Attention;
    case LayerNorm:
    case RmsNorm:
    case MsLayerNorm:
    case MsRmsNorm:
      return KindClass::Norm;
    case Gelu:
    case GeluComposed:
    case Silu:
    case Tanh:
    case Sigmoid:
    case Relu:
    case ReGelu2:
    case ReSilu2:
      return KindClass::Activation;
    case Add:
    case Mul:
    case Scale:
    case Average:
    case Dropout:
    case DropPath:
    case Cast:
      return KindClass::Elementwise;
    case View:
    case Select:
    case Split:
    case Copy:
    case Concat:
    case Embedding:
    case MeanPool:
    case MaxPool:
    case Replicate:
    case AllReduce:
    case AllGather:
    case ReduceScatter:
    case Scatter:
    case Receive:
    case Send:
      return KindClass::Data;
    case LogSoftmax:
    case NllLoss:
    case VocabularyLoss:
      return KindClass::Loss;
    case Opaque:
      return KindClass::Opaque;
  }
  return KindClass::Data;
}

}  // namespace tidemark::gui
