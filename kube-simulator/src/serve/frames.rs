//! [`Frames`]: how far the client of an HTTP/2 connection is within a frame or a block of headers.

/// The bytes that an HTTP/2 connection begins with.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADER: usize = 9;

/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// The flag of the last frame of a block of headers.
const END_HEADERS: u8 = 4;

/// The frames that have arrived since the preface.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// The bytes of the header that have arrived.
    header_length: usize,
    /// The bytes of the payload that have not arrived.
    missing: usize,
    /// The frame is about a body.
    is_data: bool,
    /// A block of headers has begun and not ended.
    is_block_open: bool,
    /// A frame has arrived: the client's settings.
    has_settings: bool,
}

impl Frames {
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let length = self.missing.min(bytes.len());
                self.missing -= length;
                bytes = &bytes[length..];
            } else {
                self.header[self.header_length] = bytes[0];
                self.header_length += 1;
                bytes = &bytes[1..];
            }
            if self.header_length == HEADER {
                self.begin_payload();
            }
        }
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

    /// Whether the client has to send more before the server can go on.
    pub(super) fn is_within(&self) -> bool {
        let is_within_frame = self.header_length > 0 || (self.missing > 0 && !self.is_data);
        !self.has_settings || is_within_frame || self.is_block_open
    }
}
