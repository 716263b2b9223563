//! The beat: control gives it to all workers once a second, and each shows by it that its loop comes around.
//!
//! It also moves on what needs a time but no clock of its own. A worker has no timer for that: while no timer at all is
//! armed, waiting for sockets costs neither the runtime nor the kernel one, and that is two of them for a single request.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::world::World;
use crate::exchange::Turn;
use crate::stats::WorkerBlock;

/// How often it comes.
const BEAT: Duration = Duration::from_secs(1);

/// What the way from one thread to another may take by itself.
const GRAIN: Duration = Duration::from_millis(2);

/// Gives the beat for as long as it is polled: when it was given last.
pub async fn give(beat: watch::Sender<Instant>) {
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        beat.send_replace(Instant::now());
    }
}

/// Follows the beat: ends clients that have overstayed their times, and shows that the loop comes around, and how late:
/// a beat that waits stands behind work.
pub(super) async fn follow(
    world: Rc<World>,
    turn: Rc<Turn>,
    own: Arc<WorkerBlock>,
    mut beat: watch::Receiver<Instant>,
) {
    let started = *beat.borrow();
    loop {
        let given = *beat.borrow_and_update();
        // To the nearest second: a beat is never quite a second behind the last one.
        let seconds = (given.saturating_duration_since(started) + BEAT / 2).as_secs();
        turn.tick.set(u32::try_from(seconds).unwrap_or(u32::MAX));
        world.sweep();
        show(&own, given);
        if beat.changed().await.is_err() {
            return; // control has gone: so will this worker
        }
    }
}

fn show(own: &WorkerBlock, given: Instant) {
    own.loop_late.add(given.elapsed().saturating_sub(GRAIN).as_micros() as u64);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    own.loop_seen_at.set(since.as_micros() as u64);
}
