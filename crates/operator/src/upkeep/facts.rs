//! What there is to say of the upkeep, for whoever else tells of the operator.

use std::sync::{Mutex, PoisonError};

/// What is not as it should be, since the last pass.
#[derive(Debug, Default)]
pub struct Facts {
    problems: Mutex<Option<Vec<String>>>,
}

impl Facts {
    pub(super) fn set(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = Some(problems);
    }

    /// None before the first pass.
    pub fn problems(&self) -> Option<Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
