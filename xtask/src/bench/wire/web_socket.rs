//! The server's side of a WebSocket (RFC 6455) for a watch. It does not read messages of the
//! client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// The constant of RFC 6455 by which a server shows that it supports the WebSocket protocol.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns the response that accepts a WebSocket. `key` is the request's header
/// `Sec-WebSocket-Key`.
pub(crate) fn accept(key: &str) -> String {
    let accepted = STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: {accepted}\r\n\r\n"
    )
}

/// Inserts a header at `start`, so that the following bytes are one text message in one frame.
pub(crate) fn frame(block: &mut Vec<u8>, start: usize) {
    let header = header(block.len() - start);
    block.splice(start..start, header);
}

fn header(length: usize) -> Vec<u8> {
    // The bit of the last frame of a message, and the opcode of text.
    const TEXT: u8 = 0x81;
    // The length has one, three or nine bytes; clients reject a longer form than necessary.
    if let Ok(length @ ..=125) = u8::try_from(length) {
        vec![TEXT, length]
    } else if let Ok(length) = u16::try_from(length) {
        [&[TEXT, 126], length.to_be_bytes().as_slice()].concat()
    } else {
        [&[TEXT, 127], (length as u64).to_be_bytes().as_slice()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_answers_the_example_of_the_rfc() {
        let response = accept("dGhlIHNhbXBsZSBub25jZQ==");
        assert!(response.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{response}");
    }

    #[test]
    fn frame_begins_after_earlier_bytes() {
        let mut block = b"earlier, new".to_vec();
        frame(&mut block, 9);
        assert_eq!(block, b"earlier, \x81\x03new");
    }

    #[test]
    fn header_has_the_shortest_form_of_the_length() {
        assert_eq!(header(125), [0x81, 125]);
        assert_eq!(header(126), [0x81, 126, 0, 126]);
        assert_eq!(header(0xffff), [0x81, 126, 0xff, 0xff]);
        assert_eq!(header(0x1_0000), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
