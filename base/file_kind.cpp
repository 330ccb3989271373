// The limit of each kind of file, with its reason.
#include "base/file_kind.h"

#include <array>

#include "base/names.h"

namespace tidemark {
namespace {

using namespace literals;

constexpr std::array rows = {
    // The 21,841 classes of ImageNet-22k, in id2label and again in label2id, are 2 MB.
    FileKindRow{FileKind::Config, "a model's config", 8_MiB,
                "name its config.json, not its weights"},
    // Those of the catalogue have 4 KB; a calibration adds a point per size and op.
    FileKindRow{FileKind::Device, "a device file", 1_MiB, "name what tidemark calibrate wrote"},
    // A line of 50 bytes for each region, and for each tensor that shares no role with others.
    FileKindRow{FileKind::Plan, "a plan file", 64_MiB,
                "name what tidemark explain --plan-out wrote"},
    // Of the 10,000 experiments that a file may list, with eight groups of each peak and of each
    // step: 20 MB.
    FileKindRow{FileKind::Check, "a check file", 64_MiB, "split it, or lower its peak_groups"},
    // A line has 20 bytes, and a step of a large model 100,000 of them.
    FileKindRow{FileKind::AllocatorScript, "an allocation script", 64_MiB, "keep one step of it"},
    // A line for each key and click.
    FileKindRow{FileKind::WindowScript, "a script for the window", 1_MiB,
                "name a script, not a recording"},
    // The program itself writes a dozen lines.
    FileKindRow{FileKind::Settings, "a settings file", 64_KiB,
                "delete the file: it is written anew"},
    // Some KB for each strategy that was replayed.
    FileKindRow{FileKind::Result, "a replay's result", 64_MiB,
                "name what tidemark replay --format json wrote"},
    // The places in a JsonDocument are numbers of 32 bits.
    FileKindRow{FileKind::Trace, "a trace", 1_GiB, "capture fewer blocks"},
    // As of a trace, which a timeline contains.
    FileKindRow{FileKind::Recording, "a timeline or report", 1_GiB, "record a smaller step"},
    // It is held in memory as a whole.
    FileKindRow{FileKind::TrainingData, "a file of training data", 1_GiB, "cut a part off it"},
};
static_assert(is_in_order(rows));

}  // namespace

const FileKindRow& row_of(FileKind kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace tidemark
