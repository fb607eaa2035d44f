//! How does a person see that something that takes long goes on? A line on standard error that moves, on a
//! terminal only, and gone when it is over.

use std::{future::Future, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is over sooner needs no word.
const PATIENCE: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(100);

/// Waits for something, and says after a moment what it is.
pub async fn shown<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let patience = tokio::time::sleep(PATIENCE);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = patience => {}
    }
    // Nothing is drawn where standard error is no terminal.
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        line.set_style(style);
    }
    line.set_message(what.to_owned());
    line.enable_steady_tick(TICK);
    let done = work.await;
    line.finish_and_clear();
    done
}
