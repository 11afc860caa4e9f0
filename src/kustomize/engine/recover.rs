//! Continues a build after a part of it failed.
//!
//! kustomize stops at its first error. A build that reports all errors skips the failed part. It records whether
//! objects, or changes of objects, are missing because of this. It suppresses later errors that may only be
//! consequences of the failed part.

use super::log::Log;
use super::lost::Lost;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Cause, Step, Stop};
use crate::kustomize::finding::TreeFinding;
use crate::kustomize::rules::kz040;

impl Run<'_> {
    /// Continues the build after a step that may have failed. Returns the value in `result`. If `result` is an error,
    /// records the error and returns `None`.
    ///
    /// - `lost`: the data that is missing because earlier steps failed, such as [`Lost::Objects`]. An error that this
    ///   missing data may have caused is not recorded.
    /// - `more`: the data that is missing if this step failed. An error sets `lost` to `more`, unless `lost` is already
    ///   greater in the order of the variants of [`Lost`].
    ///
    /// # Errors
    ///
    /// Returns the error in `result` if the build stops at its first error, or if the error is an exceeded limit.
    pub(super) fn recover<T>(&self, lost: &mut Lost, more: Lost, result: Step<T>) -> Step<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(stop) if self.is_strict || is_limit(&stop) => Err(stop),
            Err(stop) => {
                self.record(stop, *lost);
                *lost = more.max(*lost);
                Ok(None)
            }
        }
    }

    /// Continues the build after a step that may have failed on one object. If `result` is an error, records the error,
    /// and records in the object that some of its changes are missing. Also sets `lost` to [`Lost::Objects`], if it is
    /// [`Lost::Nothing`].
    ///
    /// # Errors
    ///
    /// Returns the error in `result` if the build stops at its first error, or if the error is an exceeded limit.
    pub(super) fn recover_object(&self, resource: &mut Resource, lost: &mut Lost, result: Step<()>) -> Step<()> {
        let mut own = resource.lost.max(*lost);
        if self.recover(&mut own, Lost::Changes, result)?.is_none() {
            resource.lost = Lost::Changes;
            // the failed step could have renamed the object, so an object with the new name may be missing
            *lost = Lost::Objects.max(*lost);
        }
        Ok(())
    }

    /// Records an error of kustomize, or the reason why the result of a step is unknown. `lost` is the kind of data
    /// that is missing from the build because of earlier errors. Ignores an error of kustomize that the missing data
    /// may have caused.
    pub(super) fn record(&self, stop: Stop, lost: Lost) {
        let mut log = self.log.borrow_mut();
        match stop {
            Stop::Refused(refusal) if refusal.holds >= lost => log.report(refusal.finding),
            Stop::Refused(_) => {}
            Stop::Unknown(reason) => {
                log.reason(format!("{}: {}", reason.site, reason.message));
                log.report(kz040::found(reason.site, &reason.message));
            }
        }
    }

    /// Records a finding that does not stop the build.
    pub(super) fn report(&self, finding: TreeFinding) {
        self.log.borrow_mut().report(finding);
    }

    /// Returns the log of the build, and replaces it with an empty log.
    pub(super) fn take_log(&self) -> Log {
        self.log.take()
    }
}

fn is_limit(stop: &Stop) -> bool {
    matches!(stop, Stop::Unknown(reason) if reason.cause == Cause::Limit)
}
