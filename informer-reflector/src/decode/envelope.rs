//! [`Unknown`]: the envelope of objects and lists in protobuf, and the [`Header`] of a field.

use kube_messages::{Content, Fields, Malformed, Message, Messages};

/// The first bytes of each list or status in protobuf, and of each object in a watch event.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Kubernetes' protobuf envelope `runtime.Unknown`: the bytes of an object or list, with its type.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unknown<'b> {
    pub(super) api_version: &'b str,
    pub(super) kind: &'b str,
    pub(super) raw: &'b [u8],
}

impl<'b> Unknown<'b> {
    /// Reads an envelope that begins with [`MAGIC`].
    pub(super) fn read(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut unknown = Self::default();
        let mut fields = Fields(bytes.strip_prefix(MAGIC).ok_or(Malformed)?);
        while let Some((number, content)) = fields.next()? {
            match (number, content) {
                (1, Content::Bytes(type_meta)) => unknown.read_type(type_meta)?,
                (2, Content::Bytes(raw)) => unknown.raw = raw,
                _ => {}
            }
        }
        Ok(unknown)
    }

    /// Sets `api_version` and `kind` from the bytes of a `runtime.TypeMeta` message.
    pub(super) fn read_type(&mut self, bytes: &'b [u8]) -> Result<(), Malformed> {
        let mut fields = Fields(bytes);
        while let Some((number, content)) = fields.next()? {
            let Content::Bytes(text) = content else { return Err(Malformed) };
            let text = str::from_utf8(text).map_err(|_| Malformed)?;
            match number {
                1 => self.api_version = text,
                2 => self.kind = text,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the description of the message in `raw`; `None` if [`kube_messages`] has none.
    pub(super) fn message(&self) -> Option<&'static Message> {
        Messages::all().of_kind(self.api_version, self.kind)
    }
}

/// The first two numbers of a length-delimited protobuf field (a string, bytes or a message): its
/// tag, which contains the field number, and the length of its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) number: u64,
    /// The length of the header, in bytes.
    pub(super) len: usize,
    /// The length of the content after the header, in bytes.
    pub(super) content: usize,
}

impl Header {
    /// A header has two numbers (varints) of at most ten bytes each.
    const MAX_LEN: usize = 20;

    /// Reads the header at the start of `bytes`. Returns `None` if more bytes are needed.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut rest = Fields(bytes);
        let (tag, content) = match (rest.varint(), rest.varint()) {
            (Ok(tag), Ok(content)) => (tag, content),
            _ if bytes.len() < Self::MAX_LEN => return Ok(None),
            _ => return Err(Malformed),
        };
        let content = usize::try_from(content).map_err(|_| Malformed)?;
        match tag & 7 {
            2 => Ok(Some(Self { number: tag >> 3, len: bytes.len() - rest.0.len(), content })),
            _ => Err(Malformed),
        }
    }
}
