//! Ctrl-C: once, the run ends and its reports are written; twice, the program ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::INTERRUPTED;

/// Whether somebody has asked the run to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asked for by SIGINT, from now on.
    #[allow(clippy::disallowed_methods)] // the second time the program is to end wherever it is; it has nothing to drain
    pub fn at_interrupt() -> io::Result<Self> {
        let stop = Self::default();
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let mut interrupts = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        let asked = Arc::clone(&stop.0);
        std::thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
            runtime.block_on(async {
                while interrupts.recv().await.is_some() {
                    if asked.swap(true, Ordering::Relaxed) {
                        std::process::exit(i32::from(INTERRUPTED));
                    }
                }
            });
        })?;
        Ok(stop)
    }

    /// Whether it has been.
    pub fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
