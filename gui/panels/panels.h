// The panels: each draws one part of the model into its place and lets the hands change the view.
#pragma once

#include "gui/drawing/paint.h"
#include "gui/model.h"

namespace tidemark::gui {

/// Lanes, memory curve and mini-map on one time axis.
void draw_top_bar(ViewModel& model, ViewState& view);
/// What the step takes, and what it was asked with.
void draw_header(ViewModel& model, ViewState& view);
void draw_timeline(ViewModel& model, ViewState& view);

/// The classes of ranks of a pipeline, and when each works.
void draw_ranks(ViewModel& model, ViewState& view);
void draw_live_set(ViewModel& model, ViewState& view);
void draw_icicle(ViewModel& model, ViewState& view);
void draw_address_map(ViewModel& model, ViewState& view);
void draw_compare(ViewModel& model, ViewState& view);
/// What is selected, or the statistics of a range.
void draw_details(ViewModel& model, ViewState& view);
/// A part of it.
void draw_range_details(ViewModel& model, ViewState& view);
void draw_what_if(ViewModel& model, ViewState& view);
/// A part of it. True if the step was changed.
bool draw_other_inputs(StepOptions& step, ViewState& view);
/// The step's field of this key, wherever it is drawn. True if the step was changed.
bool draw_input(std::string_view key, StepOptions& step, ViewState& view);
/// A part of it, while a plan is chosen: the slider moves what is shown at once. True if what plans
/// may do was changed.
bool draw_plan_choice(PlanChoice& choice, ViewModel& model, ViewState& view);
/// What would lower the peak, best first.
void draw_levers(ViewModel& model, ViewState& view);
/// Memory against time of all levers, beside them; a tab in narrow windows.
void draw_front(ViewModel& model, ViewState& view);
/// A tooltip.
void describe_lever(const TriedLever& lever);
/// While the mouse is over it: shows its curve, pulls it, or collects it while Ctrl is held.
void use_lever(const TriedLever& lever, ViewModel& model, ViewState& view);
void draw_notes(ViewModel& model, ViewState& view);
/// While a note is written.
void draw_note_editor(ViewModel& model, ViewState& view);
/// Where and whether to save the session.
void draw_saving(ViewState& view);
/// The experiments of a check file, those that moved first.
void draw_baseline(ViewModel& model, ViewState& view);
/// All that is open.
void draw_recordings(const ViewModel& model, ViewState& view);
void draw_search(ViewModel& model, ViewState& view);
void draw_help(ViewState& view);

}  // namespace tidemark::gui
