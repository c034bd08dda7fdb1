//! The measured clients: one line in [`FORMS`] for each. "Ours" are the clients with the informers
//! of this workspace.

/// The encoding of the responses of an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// Returns the file extension of recorded responses in this encoding.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// A client program, which uses the informers of one library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Ours,
    /// `Ours` without the allocator mimalloc.
    OursWithSystemAllocator,
    ClientGo,
    KubeRs,
    Fabric8,
}

impl Program {
    /// Returns whether the program collects garbage when it receives the line `collect`.
    pub(crate) fn collects_garbage(self) -> bool {
        matches!(self, Self::ClientGo | Self::Fabric8)
    }
}

/// A measured client, which is a row of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The name in tables, and for `--only`.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// The argument FORM of the program. It selects how the program stores objects or, for
    /// client-go, the encoding that the program requests. The fabric8 program ignores it.
    pub(crate) argument: &'static str,
    pub(crate) encoding: Encoding,
    /// Whether the client supports several handlers.
    pub(crate) has_handlers: bool,
    /// Whether the client always lists and then watches, instead of requesting a streaming list.
    pub(crate) is_list: bool,
}

pub(crate) const FABRIC8: &str = "fabric8, JSON";

const fn form(name: &'static str, program: Program, argument: &'static str, encoding: Encoding) -> Form {
    let has_handlers = !matches!(program, Program::KubeRs);
    let is_list = matches!(program, Program::Fabric8);
    Form { name, program, argument, encoding, has_handlers, is_list }
}

/// All measured clients. For a new `argument` of [`Program::Ours`], also add a match arm to
/// `xtask/wire/informer.rs`.
#[rustfmt::skip]
pub(crate) const FORMS: &[Form] = &[
    form("ours, decoded", Program::Ours, "decoded", Encoding::Protobuf),
    form("ours, decoded, system allocator", Program::OursWithSystemAllocator, "decoded", Encoding::Protobuf),
    form("ours, encoded", Program::Ours, "encoded", Encoding::Protobuf),
    form("ours, compressed", Program::Ours, "compressed", Encoding::Protobuf),
    form("ours, slim view", Program::Ours, "slim", Encoding::Protobuf),
    form("ours, slim view, compressed", Program::Ours, "slim, compressed", Encoding::Protobuf),
    form("client-go", Program::ClientGo, "protobuf", Encoding::Protobuf),
    form("ours, decoded, JSON", Program::Ours, "decoded", Encoding::Json),
    form("ours, encoded, JSON", Program::Ours, "encoded", Encoding::Json),
    form("ours, slim view, JSON", Program::Ours, "slim", Encoding::Json),
    form("client-go, JSON", Program::ClientGo, "json", Encoding::Json),
    form("kube-rs, JSON", Program::KubeRs, "whole", Encoding::Json),
    form("kube-rs, JSON, managedFields dropped", Program::KubeRs, "pruned", Encoding::Json),
    form(FABRIC8, Program::Fabric8, "json", Encoding::Json),
];
