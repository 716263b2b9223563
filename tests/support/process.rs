//! Child processes that never outlive the tests.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wait::{PATIENCE, poll};

/// A running program: what it prints goes to a file, and dropping this kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with `args` in `dir`; output and errors are appended to `dir`/`name`.log.
    pub fn start(name: &str, program: impl AsRef<Path>, args: &[String], dir: &Path) -> Self {
        let program = program.as_ref();
        let log = dir.join(format!("{name}.log"));
        let open =
            || File::options().create(true).append(true).open(&log).expect("a log in a folder of our own");
        // setpriv lets the kernel kill the child when this process dies without a chance to do so itself.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(args).current_dir(dir);
        command.stdin(Stdio::null()).stdout(open()).stderr(open());
        let child = spawn(command).unwrap_or_else(|e| panic!("{} does not start: {e}", program.display()));
        Self { child, name: name.to_owned(), log }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal. Nothing happens when the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        if self.exited().is_none() {
            let pid =
                i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a child has a positive pid");
            kill_process(pid, signal).expect("our own child can be signalled until it is waited for");
        }
    }

    /// SIGKILL, then waits for the end.
    pub fn kill(&mut self) {
        let _already_dead = self.child.kill();
        self.child.wait().expect("our own child can be waited for");
    }

    /// Its exit status, if it has ended.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child can be waited for")
    }

    /// Waits for the end; panics after `limit`.
    #[track_caller]
    pub fn wait_exit(&mut self, limit: Duration) -> ExitStatus {
        let ended = poll(limit, || self.exited().is_some());
        assert!(ended, "{} did not end within {limit:?}; its log:\n{}", self.name, self.log());
        self.exited().expect("it has ended")
    }

    /// Waits until `ready`; panics with the log when the process ends before, or too late.
    #[track_caller]
    pub fn wait_ready(&mut self, mut ready: impl FnMut() -> bool) {
        let mut status = None;
        let done = poll(PATIENCE, || {
            status = self.exited();
            status.is_some() || ready()
        });
        if let Some(status) = status {
            panic!("{} ended at once ({status}); its log:\n{}", self.name, self.log());
        }
        assert!(done, "{} is not ready after {PATIENCE:?}; its log:\n{}", self.name, self.log());
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let from = log.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
            eprintln!("--- log of {} (pid {}), its end:\n{}", self.name, self.pid(), &log[from..]);
        }
        self.kill();
    }
}

/// The file of `program` on the PATH, or in /usr/sbin, where Debian keeps some; panics when it isn't installed.
pub fn locate(program: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut candidates = path.split(':').chain(["/usr/sbin"]).map(|dir| Path::new(dir).join(program));
    candidates
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{program} is not installed; `make setup` does it"))
}

/// Starts `command` from a thread that lives as long as the process: the kernel ties a child's death signal to
/// the *thread* that made it, and a test's thread ends before the servers that tests share.
fn spawn(command: Command) -> io::Result<Child> {
    type Job = (Command, SyncSender<io::Result<Child>>);
    static SPAWNER: LazyLock<Sender<Job>> = LazyLock::new(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in queue {
                let _asker_gone = answer.send(command.spawn());
            }
        });
        jobs
    });
    let (answer, child) = mpsc::sync_channel(1);
    SPAWNER.send((command, answer)).expect("the spawner ends with the process");
    child.recv().expect("the spawner answers every job")
}
