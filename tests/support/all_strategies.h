// Every strategy with every option of its own, and combinations of all that combine.
#pragma once

#include <array>

namespace tidemark {

inline constexpr std::array all_strategies = {"vanilla",
                                              "approx-bp",
                                              "invert-act",
                                              "ms-bp",
                                              "lowmemorybp",
                                              "reversible",
                                              "reversible:released",
                                              "pareprop",
                                              "pareprop:hoist",
                                              "pareprop:released",
                                              "pareprop:hoist,released",
                                              "checkpoint",
                                              "checkpoint:every=2",
                                              "checkpoint:sqrt",
                                              "checkpoint:selective",
                                              "mesa",
                                              "mesa:released",
                                              "mesa:bits=4",
                                              "mesa:bits=2,group=32",
                                              "mesa:delayed",
                                              "fp8-activations",
                                              "fp8-activations:group=64",
                                              "fp8-activations+checkpoint:every=2",
                                              "fp8-activations+lowmemorybp",
                                              "fp8-activations+offload",
                                              "checkpoint+overlap",
                                              "checkpoint:every=2+overlap",
                                              "checkpoint:selective+overlap",
                                              "mesa+checkpoint",
                                              "mesa:released+checkpoint:every=2+overlap",
                                              "mesa:delayed,bits=4+checkpoint:every=2",
                                              "approx-bp+mesa",
                                              "invert-act+mesa+checkpoint",
                                              "lowmemorybp+checkpoint",
                                              "lowmemorybp+mesa",
                                              "lowmemorybp+mesa+checkpoint:sqrt+overlap",
                                              "reversible+lowmemorybp",
                                              "reversible+invert-act",
                                              "pareprop+approx-bp",
                                              "pareprop:hoist+lowmemorybp",
                                              "offload",
                                              "offload:every=2,prefetch=0",
                                              "mesa+offload",
                                              "checkpoint+offload",
                                              "checkpoint+offload:prefetch=2+overlap"};

}  // namespace tidemark
