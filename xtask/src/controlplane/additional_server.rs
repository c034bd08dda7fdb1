//! [`AdditionalServer`]: additional API servers on the same etcd, for tests that need other flags
//! or that shut down a server.

use super::Options;
use super::flags::Flags;

/// An API server that a control plane runs besides its main one, on the same etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdditionalServer {
    /// Has other feature gates and its own etcd prefix. No controller uses this server.
    OtherGates,
    /// Shuts down slowly on a signal. The server first continues to serve. Then it rejects
    /// requests, and ends its watches one by one.
    WithShutdownDelay,
    /// Begins to shut down immediately on a signal, as a server with default flags does. It then
    /// waits for requests in flight.
    WithoutShutdownDelay,
}

impl AdditionalServer {
    pub(crate) const ALL: [Self; 3] = [Self::OtherGates, Self::WithShutdownDelay, Self::WithoutShutdownDelay];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OtherGates => "other-gates",
            Self::WithShutdownDelay => "with-shutdown-delay",
            Self::WithoutShutdownDelay => "without-shutdown-delay",
        }
    }

    /// Returns whether tests may stop this server.
    pub(crate) fn can_be_stopped(self) -> bool {
        self != Self::OtherGates
    }

    /// Returns this server's arguments, with the paths and the etcd of the main server (`main`).
    pub(crate) fn flags(self, main: &Flags, options: &Options, port: u16) -> Vec<String> {
        let mut flags = Flags { api_port: port, ..main.clone() }.apiserver(options);
        let own: &[&str] = match self {
            // A separate prefix, so that the other servers do not have its objects.
            Self::OtherGates => {
                &["--etcd-prefix=/other-gates", "--feature-gates=CBORServingAndStorage=true,WatchList=false"]
            }
            Self::WithShutdownDelay => &[
                "--shutdown-delay-duration=20s",
                "--shutdown-send-retry-after=true",
                "--shutdown-watch-termination-grace-period=10s",
            ],
            // Bounds the wait for requests in flight.
            Self::WithoutShutdownDelay => &["--request-timeout=20s"],
        };
        flags.extend(own.iter().map(|flag| (*flag).to_owned()));
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controlplane::flags::tests::flags;

    #[test]
    fn additional_servers_differ_in_port_and_name() {
        for server in AdditionalServer::ALL {
            let flags = server.flags(&flags(), &Options::default(), 4);
            assert!(flags.contains(&"--secure-port=4".to_owned()), "{flags:?}");
            assert_eq!(AdditionalServer::ALL.iter().filter(|other| other.name() == server.name()).count(), 1);
        }
    }
}
