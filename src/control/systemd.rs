//! Tells systemd how it goes (`Type=notify`). Without systemd nothing happens.

use sd_notify::NotifyState;
use tracing::debug;

/// It serves, or serves again after a reload; it is the unit's main process, whoever was it before.
pub fn ready() {
    tell(&[NotifyState::Ready, NotifyState::MainPid(std::process::id())]);
}

/// It reads its configuration again; [`ready`] ends that.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => debug!("systemd is not told of the reload: {error}"),
    }
}

/// It drains.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!("systemd is not told: {error}");
    }
}
