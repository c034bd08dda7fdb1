//! [`Message`]: a protobuf reader without a schema.

/// The fields of a protobuf message, in order, each with its field number.
#[derive(Debug)]
pub(crate) struct Message(Vec<(u64, Content)>);

#[derive(Debug)]
enum Content {
    Number(u64),
    Bytes(Vec<u8>),
}

/// A Kubernetes object in protobuf, with the type from its envelope.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) object: Message,
}

impl Document {
    #[track_caller]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let envelope = Message::read(bytes.strip_prefix(b"k8s\0").expect("the magic number"));
        let type_meta = envelope.message(1);
        assert_eq!((envelope.text(3), envelope.text(4)), (String::new(), String::new()));
        Self { api_version: type_meta.text(1), kind: type_meta.text(2), object: envelope.message(2) }
    }

    /// Returns the name in the object's metadata.
    pub(crate) fn name(&self) -> String {
        self.object.message(1).text(1)
    }
}

impl Message {
    #[track_caller]
    pub(crate) fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let content = match tag & 7 {
                0 => Content::Number(varint(&mut bytes)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).expect("a length");
                    Content::Bytes(bytes.split_off(..length).expect("a whole message").to_vec())
                }
                other => panic!("unexpected wire type {other}"),
            };
            fields.push((tag >> 3, content));
        }
        Self(fields)
    }

    /// Returns the bytes of each occurrence of a field.
    pub(crate) fn all(&self, field: u64) -> Vec<&[u8]> {
        let found = self.0.iter().filter(|(number, _)| *number == field);
        found
            .map(|(_, content)| match content {
                Content::Bytes(bytes) => bytes.as_slice(),
                Content::Number(_) => panic!("field {field} is a number"),
            })
            .collect()
    }

    #[track_caller]
    pub(crate) fn bytes(&self, field: u64) -> &[u8] {
        let all = self.all(field);
        assert_eq!(all.len(), 1, "field {field} of {self:?}");
        all[0]
    }

    #[track_caller]
    pub(crate) fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes(field).to_vec()).expect("text")
    }

    #[track_caller]
    pub(crate) fn message(&self, field: u64) -> Self {
        Self::read(self.bytes(field))
    }

    #[track_caller]
    pub(crate) fn number(&self, field: u64) -> u64 {
        let found = self.0.iter().find(|(number, _)| *number == field);
        match found {
            Some((_, Content::Number(number))) => *number,
            other => panic!("field {field} is {other:?}"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.split_off_first().expect("a whole number");
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
