// What each command says to options that it has not, values that they do not take, and files that
// are something else: the message as a whole, because each word of it is advice.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace tidemark::cli::command_mistakes_test {
namespace {

struct Mistake {
  const char* arguments;
  int exit_code;
  const char*
      message;  // from its beginning; with the end of its line where that is not a long list
};

class MistakesOf : public testing::TestWithParam<Mistake> {};

TEST_P(MistakesOf, AreAnsweredInOneLineThatSaysWhatIsRight) {
  const Outcome outcome = tidemark(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code);
  EXPECT_EQ(outcome.output, "");
  EXPECT_TRUE(outcome.errors.starts_with(std::string("tidemark: ") + GetParam().message))
      << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(
    Plan, MistakesOf,
    testing::Values(
        Mistake{"plan gpt2 --budget 12GiB --max-slowdown 10%", 2,
                "--budget asks for the least time, --max-slowdown for the least memory (give one "
                "of them)\n"},
        Mistake{"plan gpt2 --budget 12GiB --form tensor", 2,
                "unknown form 'tensor' (did you mean 'tensors'? known: tensors, blocks, policy)\n"},
        Mistake{"plan gpt2 --budget 12GiB --form blocks --measure reservd", 2,
                "unknown measure 'reservd' (did you mean 'reserved'? known: allocated, reserved, "
                "planned, live)\n"},
        Mistake{"plan gpt2 --budget 12GiB --python-out p.py", 2,
                "--python-out: PyTorch wraps blocks or keeps calls, not single tensors (add --form "
                "policy or --form blocks)\n"},
        Mistake{"plan gpt2 --budget 12GiB --allow lossi", 2,
                "unknown allowance 'lossi' (did you mean 'lossy'? known: exact, offload, overlap, "
                "coupled, lossy, anything)\n"},
        Mistake{"plan gpt2 --max-slowdown ten%", 2,
                "--max-slowdown: 'ten%' is no share of a step (write 10%)\n"},
        Mistake{"plan gpt2 --max-slowdown -5%", 2,
                "--max-slowdown: '-5%' is no share of a step (write 10%)\n"},
        Mistake{"plan gpt2 --max-gradient-error 1%", 2,
                "--max-gradient-error: gradients are exact without --allow lossy or anything (add "
                "one of them)\n"},
        Mistake{"plan gpt2 --allow exact,offload --max-gradient-error 1%", 2,
                "--max-gradient-error: gradients are exact without --allow lossy or anything (add "
                "one of them)\n"},
        Mistake{"plan gpt2 --allow lossy --max-gradient-error 0%", 2,
                "--max-gradient-error 0%: nothing approximate is left then (leave it out, and "
                "lossy)\n"},
        Mistake{"plan gpt2 --allow lossy --max-gradient-error 0.05", 2,
                "--max-gradient-error: '0.05' is no share of the gradients (write 5%)\n"},
        Mistake{"plan gpt2 --allow lossy --max-gradient-error little", 2,
                "--max-gradient-error: 'little' is no share of the gradients (write 5%)\n"},
        Mistake{"plan gpt2 --budget 12", 2,
                "--budget: '12' has no unit (write for example 12GiB, or 12B for bytes)\n"},
        Mistake{"plan gpt2 --budget 12GiB --strategy mesa", 2,
                "plan: unknown option '--strategy' (tidemark plan --help lists all)\n"},
        Mistake{"plan gpt2 --budget 12GiB --format csv", 2,
                "--format csv is not available here (known: table, json, html, svg)\n"},
        Mistake{"plan gpt2 --top 3", 2,
                "plan: unknown option '--top' (tidemark plan --help lists all)\n"},
        Mistake{"plan", 2,
                "no model (a preset such as vit-b-16, a config.json or a .trace.json; tidemark "
                "models lists the presets)\n"}));

INSTANTIATE_TEST_SUITE_P(
    Check, MistakesOf,
    testing::Values(
        Mistake{"check --update --allow-new", 2,
                "--update records what is new already (leave out --allow-new)\n"},
        Mistake{"check --init --update", 2,
                "--init only writes the list of experiments (give it alone)\n"},
        Mistake{"check --also check.xml", 2,
                "--also: 'check.xml' is not FORMAT=FILE (as in junit=check.xml)\n"},
        Mistake{"check --also junt=check.xml", 2,
                "unknown format 'junt' (did you mean 'junit'? known: table, json, markdown, "
                "github, junit, sarif, customSmallerIsBetter, bmf)\n"},
        Mistake{"check no/such.json", 1,
                "no/such.json: there is no such file (tidemark check no/such.json --init writes a "
                "first one)\n"},
        Mistake{"check tests/zoo/tidemark.json more", 2,
                "'more' is one operand too many (usage: tidemark check [FILE])\n"},
        Mistake{
            "check README.md", 1,
            "README.md:1:1: syntax error while parsing value - invalid literal; last read: '#'\n"},
        Mistake{"check --format html", 2,
                "--format html is not available here (known: table, json, markdown, github, junit, "
                "sarif, customSmallerIsBetter, bmf)\n"}));

INSTANTIATE_TEST_SUITE_P(
    Capture, MistakesOf,
    testing::Values(
        Mistake{"capture", 2,
                "capture: need SCRIPT.py:FUNCTION, as in tidemark capture train.py:make_step, or a "
                "config.json\n"},
        Mistake{"capture config.json -b 8,16", 2,
                "--batch: '8,16' is not a whole number from 1 to 1099511627776\n"},
        Mistake{"capture train.py:make -o x.json", 2,
                "'x.json': the name of a trace file ends in .trace.json or .trace.json.zst\n"},
        Mistake{"capture train.py:make -o x.trace.json --python no/such/python", 1,
                "cannot run 'no/such/python': No such file or directory (install Python 3.9 or "
                "newer with PyTorch, or name one: --python FILE)\n"},
        Mistake{"capture train.py:make -d h1000", 2,
                "unknown device 'h1000' (did you mean 'h100'? "}));

INSTANTIATE_TEST_SUITE_P(
    CompletionAndLists, MistakesOf,
    testing::Values(
        Mistake{"completion", 2, "no shell (tidemark completion bash, or zsh, or fish)\n"},
        Mistake{"completion tcsh", 2, "unknown shell 'tcsh' (known: bash, zsh, fish)\n"},
        Mistake{"completion bash more", 2,
                "'more' is one operand too many (usage: tidemark completion bash|zsh|fish)\n"},
        Mistake{"devices --format html", 2,
                "--format html is not available here (known: table, json, csv, markdown)\n"},
        Mistake{"devices h100 a100", 2,
                "'a100' is one operand too many (usage: tidemark devices [NAME])\n"},
        Mistake{"strategies vanilla mesa", 2,
                "'mesa' is one operand too many (usage: tidemark strategies [NAME])\n"},
        Mistake{"frameworks paper torch", 2,
                "'torch' is one operand too many (usage: tidemark frameworks [NAME])\n"},
        Mistake{"models --format svg", 2,
                "--format svg is not available here (known: table, json, csv, markdown)\n"},
        Mistake{
            "allocator README.md", 1,
            "README.md:3: unknown operation '**What' (known: a, f, r, e, c, cap, conf, frac)\n"},
        Mistake{"allocator - -", 2,
                "allocator: unknown option '-' (did you mean '--help'? tidemark allocator --help "
                "lists all)\n"}));

INSTANTIATE_TEST_SUITE_P(
    TraceAndReplay, MistakesOf,
    testing::Values(
        Mistake{"trace gpt2 --format csv", 2,
                "trace: unknown option '--format' (tidemark trace --help lists all)\n"},
        Mistake{"trace gpt2 -o gpt2.json", 2,
                "'gpt2.json': the name of a trace file ends in .trace.json or .trace.json.zst\n"},
        Mistake{
            "trace --info README.md", 1,
            "README.md:1:1: syntax error while parsing value - invalid literal; last read: '#'\n"},
        Mistake{"trace --info examples/toy/mlp.trace.json gpt2", 2,
                "--info describes 'examples/toy/mlp.trace.json'; 'gpt2' is one operand too many\n"},
        Mistake{"replay", 2,
                "no model (a preset such as vit-b-16, a config.json or a .trace.json; tidemark "
                "models lists the presets)\n"},
        Mistake{"replay gpt2 --backend gpu", 2,
                "unknown backend 'gpu' (did you mean 'cpu'? known: cpu, cuda, null)\n"},
        Mistake{"replay gpt2 --steps 0", 2,
                "--steps: '0' is not a whole number from 1 to 1000000\n"},
        Mistake{"replay gpt2 --repeats 0", 2,
                "replay: unknown option '--repeats' (tidemark replay --help lists all)\n"},
        Mistake{"calibrate --precision tf32", 2,
                "no step is measured in tf32 (give fp32, bf16, amp-fp16 or amp-bf16)\n"},
        Mistake{"calibrate --from steps.json --precision bf16", 2,
                "--from has the precision of each step (leave --precision out)\n"},
        Mistake{"calibrate --backend cpu vit", 2,
                "'vit' is one operand too many (usage: tidemark calibrate)\n"},
        Mistake{"calibrate --backend null", 2,
                "the null backend has nothing to measure (use cpu or cuda)\n"},
        Mistake{"calibrate --backend gpu -o x.json", 2,
                "unknown backend 'gpu' (did you mean 'cpu'? known: cpu, cuda, null)\n"}));

INSTANTIATE_TEST_SUITE_P(
    ViewAndDiff, MistakesOf,
    testing::Values(
        Mistake{"view gpt2 --size 0x0", 2, "--size: '0' is not a whole number from 320 to 16384\n"},
        Mistake{"view gpt2 --size 640x16385", 2,
                "--size: '16385' is not a whole number from 240 to 16384\n"},
        Mistake{"view gpt2 --zoom 2", 2,
                "view: unknown option '--zoom' (tidemark view --help lists all)\n"},
        Mistake{"view gpt2 --script no/such.txt", 1,
                "no/such.txt: cannot open: No such file or directory\n"},
        Mistake{"view gpt2 --plan no/such.plan.json", 1,
                "no/such.plan.json: cannot open: No such file or directory\n"},
        Mistake{"diff a.json", 1, "a.json: cannot open: No such file or directory\n"},
        Mistake{"diff a.json b.json c.json", 2,
                "'c.json' is one operand too many (usage: tidemark diff BEFORE [AFTER])\n"},
        Mistake{"diff README.md README.md", 1,
                "README.md:1:1: syntax error while parsing value - invalid literal; last read: "
                "'#'\n"}));

INSTANTIATE_TEST_SUITE_P(
    Explain, MistakesOf,
    testing::Values(
        Mistake{"explain gpt2 --graph graph.svg", 2,
                "--graph: 'graph.svg' must end in .dot (for graphviz) or .json (for programs); dot "
                "-Tsvg FILE.dot -o FILE.svg draws the first\n"},
        Mistake{"explain gpt2 --graph g.dot --block 12", 2,
                "--block, unless it is all,: '12' is not a whole number from 0 to 11\n"},
        Mistake{"explain gpt2 --graph g.dot --top 3", 2,
                "--graph writes the graph and nothing else: --top has no meaning here (leave it "
                "out)\n"},
        Mistake{"explain gpt2 --graph g.dot --levers", 2,
                "--graph writes the graph and nothing else: --levers has no meaning here (leave it "
                "out)\n"},
        Mistake{"explain gpt2 --saved --levers", 2,
                "--saved is a report of its own (leave out --levers)\n"},
        Mistake{"explain gpt2 --graph g.dot --format json", 2,
                "--graph writes the graph and nothing else: --format has no meaning here (leave it "
                "out)\n"},
        Mistake{"explain gpt2 --plan no/such.plan.json", 1,
                "no/such.plan.json: cannot open: No such file or directory\n"},
        Mistake{
            "explain gpt2 --plan README.md", 1,
            "README.md:1:1: syntax error while parsing value - invalid literal; last read: '#'\n"},
        Mistake{"explain gpt2 --plan examples/plans/vit-cheap.plan.json --strategy mesa", 2,
                "--plan takes the place of --strategy (give one of them)\n"},
        Mistake{"explain tests/reference/snapshots/two_streams.pickle --strategy mesa", 2,
                "--strategies cannot change tests/reference/snapshots/two_streams.pickle: it holds "
                "a step that was predicted or measured before\n"},
        Mistake{"explain tests/reference/snapshots/two_streams.pickle blocks.0", 2,
                "a memory snapshot has blocks and stacks, no tensors, ops and plans: explain takes "
                "--top, --format and --output with it\n"}));

INSTANTIATE_TEST_SUITE_P(
    NamesOfOtherTools, MistakesOf,
    testing::Values(
        Mistake{"compare gpt2 --batch-size 4", 2,
                "compare: unknown option '--batch-size' (did you mean '--batch'? tidemark compare "
                "--help lists all)\n"},
        Mistake{"compare gpt2 --gradient_accumulation_steps=4", 2,
                "compare: unknown option '--gradient_accumulation_steps=4' (did you mean "
                "'--accumulate'? tidemark compare --help lists all)\n"},
        Mistake{"compare gpt2 --gradient-checkpointing", 2,
                "compare: unknown option '--gradient-checkpointing' (did you mean '--strategies "
                "checkpoint'? tidemark compare --help lists all)\n"},
        Mistake{"plan gpt2 --lora", 2,
                "plan: unknown option '--lora' (did you mean '--tuning lora'? tidemark plan --help "
                "lists all)\n"},
        // What the command has not is no advice.
        Mistake{"devices --batch-size 4", 2,
                "devices: unknown option '--batch-size' (tidemark devices --help lists all)\n"},
        Mistake{"compare gpt2 -d 4090", 2, "unknown device '4090' (did you mean 'rtx-4090'? "},
        Mistake{"plan gpt2 --budget 12GiB --allow exact,all", 2,
                "unknown allowance 'all' (did you mean 'anything'?)\n"}));

INSTANTIATE_TEST_SUITE_P(
    OtherFiles, MistakesOf,
    testing::Values(
        Mistake{"compare examples/ci/tidemark.json", 1,
                "examples/ci/tidemark.json: is a file of experiments, and no model (tidemark check "
                "takes it)\n"},
        Mistake{"explain examples/plans/vit-cheap.plan.json", 1,
                "examples/plans/vit-cheap.plan.json: is a plan, and no model (name its model, and "
                "give it as --plan FILE)\n"},
        Mistake{"explain simulator/devices/h100.json", 1,
                "simulator/devices/h100.json: is a device, and no model (give it as --device "
                "FILE)\n"}));

INSTANTIATE_TEST_SUITE_P(
    Compare, MistakesOf,
    testing::Values(
        Mistake{"compare tests/reference/snapshots/two_streams.pickle", 1,
                "tests/reference/snapshots/two_streams.pickle: is a memory snapshot, of blocks and "
                "stacks; a step to plan is needed here (tidemark explain, view and diff take "
                "snapshots)\n"},
        Mistake{"compare gpt2 -b 8,16 --plan-budget 8GiB -d h100,t4", 2,
                "--plan-budget plans for one step (give one batch, length and device)\n"},
        Mistake{"compare gpt2 --replay gpu", 2,
                "unknown backend 'gpu' (did you mean 'cpu'? known: cpu, cuda, null)\n"},
        Mistake{"compare gpt2 --replay cpu --max-batch", 2,
                "--max-batch is for predictions alone (leave out --replay)\n"},
        Mistake{"compare gpt2 --padded yes", 2,
                "'yes' is one operand too many (usage: tidemark compare MODEL)\n"},
        Mistake{"compare gpt2 -b 8:1:1", 2,
                "--batch: '8:1:1' is not a whole number from 1 to 1099511627776 (or a list such as "
                "8,16,32, a range in steps such as 8:64:8, or one by factors such as 8:256:x2)\n"},
        Mistake{"compare gpt2 -b 1:100000:1", 2,
                "--batch: '1:100000:1' has more than 10000 values (take larger steps)\n"},
        Mistake{"compare gpt2 -b 8,", 2,
                "--batch: '' is not a whole number from 1 to 1099511627776 (or a list such as "
                "8,16,32, a range in steps such as 8:64:8, or one by factors such as 8:256:x2)\n"},
        Mistake{"compare gpt2 --budget -1GiB", 2,
                "--budget: '-1GiB' is not a size (write for example 24GiB, 24GB or 512MiB)\n"},
        Mistake{"compare gpt2 --alloc-conf expandable_segments:maybe", 2,
                "allocator settings: expandable_segments is 'maybe'; need True or False\n"},
        Mistake{"compare gpt2 --alloc-conf garbage_collection_threshold:2", 2,
                "allocator settings: garbage_collection_threshold is '2'; need a number between 0 "
                "and 1, both excluded\n"},
        Mistake{"compare gpt2 --strategies mesa:bits=3", 2,
                "strategy option 'bits=3': bits= takes a number of bits, one of 2, 4, 8\n"},
        Mistake{"compare gpt2 --strategies mesa:group=0", 2,
                "strategy option 'group=0': group= takes a number of channels, 1 or more\n"},
        Mistake{"compare gpt2 --strategies +mesa", 2,
                "unknown strategy '' (known: vanilla, approx-bp, invert-act, ms-bp, lowmemorybp, "
                "reversible, pareprop, checkpoint, mesa, fp8-activations, offload, overlap)\n"}));

INSTANTIATE_TEST_SUITE_P(
    OptionsOfTheStep, MistakesOf,
    testing::Values(
        Mistake{"compare gpt2 --target-sequence 8", 2,
                "--target-sequence does not apply to 'gpt2', which is no encoder-decoder (use "
                "--sequence)\n"},
        Mistake{"compare t5-base --target-sequence 0", 2,
                "--target-sequence: '0' is not a whole number from 1 to 1099511627776\n"},
        Mistake{"compare gpt2 --accumulate 0", 2,
                "--accumulate: '0' is not a whole number from 1 to 1024\n"},
        Mistake{"compare gpt2 --accumulate 1025", 2,
                "--accumulate: '1025' is not a whole number from 1 to 1024\n"},
        Mistake{"compare gpt2 --optimizer sdg", 2, "unknown optimizer 'sdg' (did you mean 'sgd'? "},
        Mistake{"compare gpt2 --loss chunked:17", 2,
                "loss: '17' is not a number of chunks (chunked:8; 1 to 16)\n"},
        Mistake{"compare gpt2 --loss chunked", 2,
                "loss: 'chunked' needs how many chunks, as in chunked:8\n"},
        Mistake{"compare gpt2 --loss chunked:", 2,
                "loss: '' is not a number of chunks (chunked:8; 1 to 16)\n"},
        Mistake{"compare whisper-small --sequence 100 --target-sequence 50", 2,
                "--sequence and --target-sequence both say how many tokens 'whisper-small' writes: "
                "what it hears is as long as its config says (leave --sequence out)\n"},
        Mistake{"compare llama-7b --tuning lora:r=8,targets=q,foo --base nf4", 2,
                "unknown linear 'foo' (known: q, k, v, o, gate, up, down)\n"},
        Mistake{"compare gpt2 --loss chunk:4", 2,
                "unknown loss 'chunk' (did you mean 'chunked'? known: chunked, fused-linear, dpo, "
                "fused, native)\n"},
        Mistake{"compare vit-b-16 --loss chunked:4", 2,
                "--loss: vit-b-16 has no logits of the next words (or caps or scales them), which "
                "is what "
                "chunked:4 is for\n"},
        Mistake{"compare gpt2 --base nf5", 2,
                "unknown base 'nf5' (did you mean 'nf4'? known: nf4, nf4-double, int8, fp8)\n"},
        Mistake{"compare bert-base --linears fp8", 2,
                "--linears fp8: NVIDIA A100 SXM4 80 GB (compute capability 8.0) has no units for "
                "such products (use --device "},
        Mistake{"compare llama-3-8b -s 64 --precision bf16 --framework megatron --linears mxfp8 "
                "--device h100",
                2,
                "--linears mxfp8: NVIDIA H100 SXM5 80 GB (compute capability 9.0) has no units for "
                "such products (use --device b200, b300, gb200, gb300)"},
        Mistake{"compare llama-3-8b -s 64 --precision bf16 --framework megatron --linears nvfp4 "
                "--device h200",
                2,
                "--linears nvfp4: NVIDIA H200 SXM5 141 GB (compute capability 9.0) has no units "
                "for such products (use --device b200, b300, gb200, gb300)"},
        Mistake{
            "compare bert-base --linears nvfp4 --device b200", 2,
            "--linears: transformers-4.57 has none with factors by groups: nvfp4 is Transformer "
            "Engine's (take fp8, or --framework megatron)"},
        Mistake{"compare gpt2 --linears fp8 --device h100", 2,
                "--linears: not known of GPT-2's projections, Conv1D modules that torchao does not "
                "convert"},
        Mistake{"compare mixtral-8x7b -s 64 --linears fp8 --device h100", 2,
                "--linears: not known of mixtures of experts, whose rows vary"},
        Mistake{"compare bert-base -s 63 -b 3 --linears fp8 --device h100", 2,
                "--linears: eight-bit products take rows in multiples of 16, but blocks.0.attn.q "
                "has 189"},
        Mistake{"compare bert-base --linears fp8 --device h100 --framework torch-1.13", 2,
                "--linears: torch-1.13 has no linears in eight bits that are known"},
        Mistake{"compare llama-3-8b --loss native --liger --precision bf16", 2,
                "--loss: Liger has a loss of its own (leave --loss or --liger out)"},
        Mistake{"compare llama-3-8b -s 64 --liger --framework megatron", 2,
                "--liger: Liger patches transformers' code, which megatron does not run (leave it "
                "out)\n"},
        Mistake{
            "compare gpt2 -s 64 --mesh dp=2 --shard megatron:whole-states --optimizer adafactor", 2,
            "--shard: adafactor is no optimizer of Megatron-LM's (take --shard ddp)\n"},
        Mistake{"compare gpt2 -s 64 --mesh dp=2 --shard megatron --optimizer rmsprop", 2,
                "--shard: rmsprop is no optimizer of Megatron-LM's (take --shard ddp)\n"},
        Mistake{"compare gpt2 -s 64 --framework megatron --optimizer adamw-8bit", 2,
                "--optimizer: Megatron-LM has no adamw-8bit (take one of adamw, sgd, sgd-momentum, "
                "lion, muon)\n"},
        Mistake{"compare gpt2 -s 64 --mesh dp=4 --shard megatron:whole-states,instances=2", 2,
                "--shard: instances are groups of ranks that cut states, and whole-states cuts "
                "none (leave one of them out)\n"},
        Mistake{"compare gpt2 -s 64 --mesh pp=2 --schedule interleaved:v=2", 1,
                "--schedule: 2 chunks of 2 stages take turns with 2 micro-batches or more, and "
                "here are 1 (take --accumulate 2, or 1f1b)\n"},
        Mistake{"compare gpt2 -s 64 --mesh pp=2 --accumulate 3 --schedule interleaved:v=2,group=4",
                1,
                "--schedule: group=4 is more than the 3 micro-batches that there are (take "
                "group=3)\n"},
        Mistake{"compare gpt2 --loss chunked:4 --mesh pp=2 --accumulate 2", 2,
                "--loss: with pipeline stages chunked:4 is not simulated (take fused or native, or "
                "pp=1)\n"},
        Mistake{"compare gpt2 --loss fused --framework megatron --precision amp-bf16", 2,
                "--loss: fused is not known in amp-bf16 (take --precision bf16)\n"},
        Mistake{"search mixtral-8x7b --gpus 8 --framework megatron --precision bf16 --ep-form "
                "all-gather --expert-load 1.5",
                2, "--ep-form: a rank that has all tokens of all is as busy"},
        Mistake{"compare gpt2 --rank pp1", 1,
                "--rank: pp1 is of a pipeline, and this step has one stage (leave it out, or give "
                "--mesh pp=2)"},
        Mistake{"explain gpt2 --mesh pp=2 --accumulate 4 --rank pp7", 1,
                "--rank: pp7 is not among the 2 stages (the last is pp1)"},
        Mistake{"compare gpt2 --linears mxfp4", 2,
                "unknown linears 'mxfp4' (did you mean 'mxfp8'? known: fp8, fp8-blockwise, mxfp8, "
                "nvfp4)\n"},
        Mistake{"compare gpt2 --tuning prompt", 2,
                "tuning: 'prompt' needs how many tokens are learned, as in prompt:tokens=20"},
        Mistake{"compare bert-base --tuning prompt:tokens=20", 2,
                "tuning: prompts are known in front of decoders that predict words, which "},
        Mistake{
            "compare gpt2 --loss dpo:kto", 2,
            "loss: 'dpo:kto' is not understood (dpo, or dpo:precomputed: what the reference says "
            "is data)\n"},
        Mistake{"compare bert-base --loss dpo", 2,
                "--loss: bert-base has no logits of the next words (or caps or scales them), which "
                "is what "
                "dpo is for\n"},
        Mistake{"compare gpt2 --loss dpo --framework transformers-5", 2,
                "--loss: TRL's pairs are known beside transformers-4.57 (take that --framework)\n"},
        Mistake{"compare gpt2 --loss dpo --tuning prompt:tokens=20", 2,
                "--loss: what the reference is beside learned tokens and copied modules is not "
                "known (take --tuning full, or lora:r=8 without save=)\n"},
        Mistake{"compare gpt2 --loss dpo -s 1", 2,
                "--loss: a pair needs a sequence of 2 tokens or more\n"},
        Mistake{"compare gpt2 --loss dpo --base nf4 --tuning lora:r=8,targets=all", 2,
                "--loss: on a base in few bits TRL makes adapters 16 bits wide (add dtype=base to "
                "--tuning)\n"},
        Mistake{"compare gpt2 --tuning prefix", 2,
                "tuning: 'prefix' needs how many tokens are learned, as in prefix:tokens=20 (1 to "
                "65536; also projection=512)"},
        Mistake{"compare bert-base --tuning prefix:tokens=20", 2,
                "tuning: prefixes are known in front of decoders that predict words, which "},
        Mistake{"compare mistral-7b -s 64 --tuning prefix:tokens=20", 2,
                "tuning: prefixes are known in front of blocks that see all tokens by "},
        Mistake{"compare gpt2 --precision bf16 --attention flash --tuning prefix:tokens=20", 2,
                "tuning: a prefix makes a mask wider than high"},
        Mistake{"compare gpt2 -s 1010 --tuning prompt:tokens=20", 2,
                "sequence 1010 exceeds the model's 1024 learned positions (use 1004 or less)"},
        Mistake{"compare gpt2 --base nf4", 2,
                "--base: weights in nf4 cannot be trained; need adapters (--tuning lora:r=8,…)\n"},
        Mistake{"compare gpt2 --tuning lora:r=0", 2, "tuning: r=0 is not a rank (1 to 65536)\n"},
        Mistake{"compare gpt2 --tuning lora:targets=nothing", 2,
                "unknown linear 'nothing' (known: qkv, proj, fc1, fc2)\n"},
        Mistake{"compare gpt2 --tuning frozen:", 2,
                "tuning: 'frozen' needs names (for example frozen:embed*,blocks.0.*)\n"},
        Mistake{"compare gpt2 --update-in-backward --accumulate 2", 2,
                "--update-in-backward: an update in the backward frees gradients that 2 "
                "micro-batches would add to (leave one of the two out)\n"},
        Mistake{"compare vit-b-16 --image 7", 2,
                "image size 7 is not a multiple of the patch size 16\n"},
        Mistake{"compare vit-b-16 --image 0", 2,
                "--image: '0' is not a whole number from 1 to 1099511627776\n"},
        Mistake{"compare gpt2 --attention mem-eficient", 2,
                "unknown attention 'mem-eficient' (did you mean 'mem-efficient'? known: sdpa, "
                "math, flash, mem-efficient)\n"},
        Mistake{"compare gpt2 --precision bf16,fp32", 2,
                "unknown precision 'bf16,fp32' (known: fp32, tf32, amp-fp16, amp-bf16, bf16)\n"}));

}  // namespace
}  // namespace tidemark::cli::command_mistakes_test
