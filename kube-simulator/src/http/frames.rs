//! [`Frames`]: tracks whether an HTTP/2 client is in the middle of a frame or a header block.

/// The connection preface of HTTP/2.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame header, in bytes.
const HEADER_LENGTH: usize = 9;

/// The type of frames with the body of a request.
const DATA: u8 = 0;
/// The type of frames that begin a header block.
const HEADERS: u8 = 1;
/// The type of frames that continue a header block.
const CONTINUATION: u8 = 9;

/// The flag on the last frame of a header block.
const END_HEADERS: u8 = 4;

/// The state of the HTTP/2 frames that have arrived from a client since the connection preface.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER_LENGTH],
    /// The number of bytes of the current frame header that have arrived.
    header_length: usize,
    /// The number of payload bytes of the current frame that have not arrived.
    missing: usize,
    is_data: bool,
    /// Whether a header block is incomplete.
    is_block_open: bool,
    /// Whether the header of the client's first frame, a `SETTINGS` frame, has arrived.
    has_settings: bool,
}

impl Frames {
    /// Processes bytes that have arrived from the client. Returns whether the frame or header block
    /// that is [incomplete](Self::is_incomplete) after these bytes also began in these bytes.
    ///
    /// - A header block begins with its `HEADERS` frame, not with a `CONTINUATION` frame.
    /// - The client's first frame counts as begun when the connection opened.
    /// - If nothing is incomplete after these bytes, the result has no meaning.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> bool {
        let mut begins = false;
        while !bytes.is_empty() {
            // The first frame counts as begun at the start of the connection.
            begins |= !self.is_incomplete();
            if self.missing > 0 {
                let length = self.missing.min(bytes.len());
                self.missing -= length;
                bytes = &bytes[length..];
            } else {
                self.header[self.header_length] = bytes[0];
                self.header_length += 1;
                bytes = &bytes[1..];
            }
            if self.header_length == HEADER_LENGTH {
                self.begin_payload();
            }
        }
        begins
    }

    fn begin_payload(&mut self) {
        let [a, b, c, kind, flags, ..] = self.header;
        self.header_length = 0;
        self.missing = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.is_data = kind == DATA;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.is_block_open = flags & END_HEADERS == 0;
        }
        self.has_settings = true;
    }

    /// Returns whether a frame or a header block is incomplete. Before the first frame, returns
    /// `true`. The payload of a `DATA` frame does not count.
    pub(super) fn is_incomplete(&self) -> bool {
        let is_within_frame = self.header_length > 0 || (self.missing > 0 && !self.is_data);
        !self.has_settings || is_within_frame || self.is_block_open
    }
}
