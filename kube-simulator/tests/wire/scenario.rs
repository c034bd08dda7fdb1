//! [`Scenario`]: one row of the suite, and how it becomes two tests.

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

/// Long enough for any scenario; the longest wait that a server has by itself is 20 seconds, before it leaves.
const PATIENCE: Duration = Duration::from_secs(90);

/// Held for reading by each scenario on a real server, whichever that is: all have the same etcd and the same machine. Held
/// for writing by those that need these for themselves. Nobody waits for another scenario within one, so one that takes long
/// delays those that want to be alone, and who comes after these, but stops nobody.
static REAL_SERVER: RwLock<()> = RwLock::const_new(());

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Simulator,
    Server,
}

type Run = dyn Fn(Server) -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync;

/// One row: something that a client can see of a server.
pub(crate) struct Scenario {
    /// What happens, as a sentence with underscores: the name of the function.
    pub(crate) name: &'static str,
    /// The name of the function's module.
    pub(crate) subject: &'static str,
    run: Arc<Run>,
    /// How the real server's behaviour differs from the simulator's; the scenario asserts both.
    pub(crate) difference: Option<&'static str>,
    /// The place in which it can't run, and why.
    pub(crate) left_out: Option<(Place, &'static str)>,
    /// Whether it does to the server what other scenarios would notice.
    alone: bool,
    /// Whether it needs a connection of its own, which the simulator has only over a socket.
    over_a_socket: bool,
    /// Whether a real server needs a controller-manager for it.
    needs_controllers: bool,
    /// The server that it is for.
    pub(crate) target: Target,
}

/// Makes a row of a function.
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
    /// Says how the real server differs.
    pub(crate) fn differs(self, how: &'static str) -> Self {
        Self { difference: Some(how), ..self }
    }

    /// Leaves the simulator out.
    pub(crate) fn only_on_the_server(self, why: &'static str) -> Self {
        Self { left_out: Some((Place::Simulator, why)), ..self }
    }

    /// Runs on the real server while no other scenario does on any.
    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Runs on a server with other feature gates.
    pub(crate) fn with_other_gates(self) -> Self {
        Self { target: Target::OtherGates, ..self }
    }

    /// Runs on the simulator's socket, on a clock that is not paused: bytes that are under way take real time.
    pub(crate) fn over_a_socket(self) -> Self {
        Self { over_a_socket: true, ..self }
    }

    /// Runs on a server that it makes leave.
    pub(crate) fn on_a_leaving_server(self) -> Self {
        Self { target: Target::Leaving, ..self.over_a_socket() }
    }

    /// Runs on a server that it makes leave at once.
    pub(crate) fn on_a_server_that_leaves_at_once(self) -> Self {
        Self { target: Target::LeavingAtOnce, ..self.over_a_socket() }
    }

    /// Runs on a real server only where there is a controller-manager.
    pub(crate) fn with_controllers(self) -> Self {
        Self { needs_controllers: true, ..self }
    }

    pub(crate) fn runs_on(&self, place: Place) -> bool {
        self.left_out.is_none_or(|(left_out, _)| left_out != place)
    }

    /// Makes a test of the row, unless it does not run in this place.
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
                eprintln!("skipped: needs --with controller-manager");
                return Ok(());
            }
            runtime(place == Place::Simulator && !over_a_socket).block_on(async {
                match place {
                    Place::Simulator => in_time(run(Server::simulator(target, over_a_socket).await)).await,
                    Place::Server if alone => {
                        let _nobody_else = REAL_SERVER.write().await;
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

/// Under a paused clock the simulator's waits take no time; the real server's clock can't be paused.
fn runtime(paused: bool) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(paused);
    builder.build().expect("a runtime")
}

async fn in_time(scenario: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, scenario).await.expect("the scenario should have ended by now");
}

/// All rows, subject by subject.
pub(crate) fn all() -> Vec<Scenario> {
    subjects::all().into_iter().flatten().collect()
}
