//! Refuses papers and plans that cannot be used.

use anabranch_lab::claims::{PaperError, PlanError};

use crate::output::{fail, refuse, refuse_scenario};

/// Says what is wrong with a paper, and returns the exit status.
pub(crate) fn refuse_paper(error: &PaperError) -> u8 {
    match error {
        PaperError::Text(error) => refuse_scenario(error),
        PaperError::File { .. } => refuse(error),
    }
}

/// Says why a plan cannot be made or carried out, and returns the exit status.
pub(super) fn refuse_plan(error: &PlanError) -> u8 {
    match error {
        PlanError::Paper(error) => refuse_paper(error),
        PlanError::Run(_) | PlanError::Finished(_) => fail(error),
    }
}
