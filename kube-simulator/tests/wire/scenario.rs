//! [`Scenario`]: a row of the suite. It becomes one test for each server on which it runs.

use std::any::type_name;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::RwLock;

use crate::server::Server;
use crate::subjects;
use crate::target::Target;

/// The timeout of each scenario. The longest wait for a real server is 20 seconds, during its
/// shutdown.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Scenarios on real servers hold this lock for reading, because all servers share one etcd and one
/// machine. Exclusive scenarios hold it for writing. A scenario does not wait for other scenarios
/// while it holds the lock, so there is no deadlock.
static REAL_SERVER: RwLock<()> = RwLock::const_new(());

/// The server on which a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Simulator,
    Server,
}

type Run = dyn Fn(Server) -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync;

/// One row of the suite: a behavior of a server that clients can observe.
pub(crate) struct Scenario {
    /// The name of the scenario's function.
    pub(crate) name: &'static str,
    /// The name of the module of the scenario's function.
    pub(crate) subject: &'static str,
    run: Arc<Run>,
    /// The difference between the real server and the simulator, if there is one. The scenario
    /// asserts both behaviors.
    pub(crate) difference: Option<&'static str>,
    /// The place where the scenario cannot run, and the reason; `None` if it runs in both places.
    pub(crate) left_out: Option<(Place, &'static str)>,
    /// Whether the scenario disturbs other scenarios on the same server.
    pub(crate) alone: bool,
    /// Whether the scenario needs its own TCP connection. The simulator has TCP connections only if
    /// it serves a socket.
    over_a_socket: bool,
    /// Whether the scenario needs a controller-manager on a real server.
    needs_controllers: bool,
    /// The kind of server that the scenario needs.
    pub(crate) target: Target,
}

/// Creates a row of the suite from the function of a scenario.
pub(crate) fn scenario<F, R>(run: F) -> Scenario
where
    F: Fn(Server) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + 'static,
{
    let mut path = type_name::<F>().rsplit("::");
    let name = path.next().expect("a function has a name");
    let subject = path.next().expect("a function is in a module");
    let run: Arc<Run> = Arc::new(move |server| Box::pin(run(server)));
    Scenario {
        name,
        subject,
        run,
        difference: None,
        left_out: None,
        alone: false,
        over_a_socket: false,
        needs_controllers: false,
        target: Target::Usual,
    }
}

impl Scenario {
    /// Describes how the real server differs from the simulator.
    pub(crate) fn differs(self, how: &'static str) -> Self {
        Self { difference: Some(how), ..self }
    }

    /// Excludes the simulator, for the reason `why`.
    pub(crate) fn only_on_the_server(self, why: &'static str) -> Self {
        Self { left_out: Some((Place::Simulator, why)), ..self }
    }

    /// Runs without concurrent scenarios on the real servers.
    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Runs on a server with different feature gates.
    pub(crate) fn with_other_gates(self) -> Self {
        Self { target: Target::OtherGates, ..self }
    }

    /// Runs over the simulator's socket with a running clock, because transmission takes real time.
    pub(crate) fn over_a_socket(self) -> Self {
        Self { over_a_socket: true, ..self }
    }

    /// Runs on a server with a shutdown delay. The scenario shuts this server down.
    pub(crate) fn with_shutdown_delay(self) -> Self {
        Self { target: Target::WithShutdownDelay, ..self.over_a_socket() }
    }

    /// Runs on a server without a shutdown delay. The scenario shuts this server down.
    pub(crate) fn without_shutdown_delay(self) -> Self {
        Self { target: Target::WithoutShutdownDelay, ..self.over_a_socket() }
    }

    /// Runs on a real server only if a controller-manager is running.
    pub(crate) fn with_controllers(self) -> Self {
        Self { needs_controllers: true, ..self }
    }

    pub(crate) fn runs_on(&self, place: Place) -> bool {
        self.left_out.is_none_or(|(left_out, _)| left_out != place)
    }

    /// Creates a test from the row, unless the scenario does not run in this place.
    pub(crate) fn trial(&self, place: Place) -> Option<Trial> {
        if !self.runs_on(place) {
            return None;
        }
        let (run, target) = (self.run.clone(), self.target);
        let (alone, over_a_socket) = (self.alone, self.over_a_socket);
        let lacks_controllers = self.needs_controllers && !target.has_controllers();
        let (prefix, on_the_server) = match place {
            Place::Simulator => ("simulator", false),
            Place::Server => ("server", true),
        };
        let test = move || {
            if on_the_server && lacks_controllers {
                eprintln!("skipped: run `cargo xtask e2e --with controller-manager`");
                return Ok(());
            }
            runtime(place == Place::Simulator && !over_a_socket).block_on(async {
                match place {
                    Place::Simulator => in_time(run(Server::simulator(target, over_a_socket).await)).await,
                    Place::Server if alone => {
                        let _exclusive = REAL_SERVER.write().await;
                        in_time(run(Server::real(target).await)).await;
                    }
                    Place::Server => {
                        let _shared = REAL_SERVER.read().await;
                        in_time(run(Server::real(target).await)).await;
                    }
                }
            });
            Ok(())
        };
        let name = format!("{prefix}::{}::{}", self.subject, self.name);
        Some(Trial::test(name, test).with_ignored_flag(on_the_server))
    }
}

/// Returns the runtime of a scenario. On a paused clock, the simulator's waits take no real time.
/// The real server's clock cannot be paused.
fn runtime(paused: bool) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(paused);
    builder.build().expect("a runtime")
}

async fn in_time(scenario: impl Future<Output = ()>) {
    tokio::time::timeout(TIMEOUT, scenario).await.expect("the scenario timed out");
}

pub(crate) fn all() -> Vec<Scenario> {
    subjects::all().into_iter().flatten().collect()
}
