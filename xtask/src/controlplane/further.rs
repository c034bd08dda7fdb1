//! [`Further`]: the API servers beside the one that a control plane is about. They are before the same etcd, and there
//! for what a server does only with other flags, or only once.

use super::Options;
use super::flags::Flags;

/// One of the further API servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    /// With other feature gates, and objects of its own. No controller knows of it.
    OtherGates,
    /// To be told to leave, and taking its time for it: it serves on, then refuses, and ends its watches one after another.
    Leaving,
    /// To be told to leave, which it does at once, as without any flags; but what is under way has less than a minute.
    LeavingAtOnce,
}

impl Further {
    pub(crate) const ALL: [Self; 3] = [Self::OtherGates, Self::Leaving, Self::LeavingAtOnce];

    /// What it is called in the names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OtherGates => "other-gates",
            Self::Leaving => "leaving",
            Self::LeavingAtOnce => "leaving-at-once",
        }
    }

    /// Whether it may end before the others do.
    pub(crate) fn may_end(self) -> bool {
        self != Self::OtherGates
    }

    /// Its command line, where it is to listen on `port`.
    pub(crate) fn flags(self, main: &Flags, options: &Options, port: u16) -> Vec<String> {
        let mut flags = Flags { api_port: port, ..main.clone() }.apiserver(options);
        let own: &[&str] = match self {
            // Of its own, because others could not read what it stores.
            Self::OtherGates => {
                &["--etcd-prefix=/other-gates", "--feature-gates=CBORServingAndStorage=true,WatchList=false"]
            }
            Self::Leaving => &[
                "--shutdown-delay-duration=20s",
                "--shutdown-send-retry-after=true",
                "--shutdown-watch-termination-grace-period=10s",
            ],
            // It bounds how long the server waits for what is under way.
            Self::LeavingAtOnce => &["--request-timeout=20s"],
        };
        flags.extend(own.iter().map(|flag| (*flag).to_owned()));
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listens_on_its_own_port_and_is_called_otherwise() {
        let main = Flags {
            dir: "/data".into(),
            kubeconfig: "/data/kubeconfig".into(),
            etcd_port: 1,
            etcd_peer_port: 2,
            api_port: 3,
        };
        for further in Further::ALL {
            let flags = further.flags(&main, &Options::default(), 4);
            assert!(flags.contains(&"--secure-port=4".to_owned()), "{flags:?}");
            assert_eq!(Further::ALL.iter().filter(|other| other.name() == further.name()).count(), 1);
        }
    }
}
