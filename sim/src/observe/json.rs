//! JSON written into a buffer, without a tree of values.

use std::io::Write;

/// A value.
#[derive(Copy, Clone)]
pub(super) enum Json<'a> {
    Null,
    Number(u64),
    Decimal(f64),
    Text(&'a str),
    Texts(&'a [String]),
    Object(&'a [Field<'a>]),
    /// The field is left out.
    Absent,
}

/// A key and its value. The keys of an object ascend, as they do in other files of a run.
pub(super) type Field<'a> = (&'static str, Json<'a>);

impl<'a> Json<'a> {
    /// A text, or null.
    pub(super) fn or_null(text: Option<&'a str>) -> Self {
        text.map_or(Json::Null, Json::Text)
    }

    /// A text, or no field.
    pub(super) fn or_absent(text: Option<&'a str>) -> Self {
        text.map_or(Json::Absent, Json::Text)
    }

    /// Writes the value at the end of `out`.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Json::Null | Json::Absent => out.extend(b"null"),
            Json::Number(number) => out.extend(itoa::Buffer::new().format(number).as_bytes()),
            Json::Decimal(number) => put(out, &number),
            Json::Text(text) => put(out, text),
            Json::Texts(texts) => put(out, texts),
            Json::Object(fields) => object(out, fields),
        }
    }
}

fn put<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out.by_ref(), value).expect("numbers and texts can be written into a buffer");
}

fn object(out: &mut Vec<u8>, fields: &[Field<'_>]) {
    out.push(b'{');
    let present = fields.iter().filter(|(_, value)| !matches!(value, Json::Absent));
    for (i, (key, value)) in present.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend(key.as_bytes());
        out.extend(b"\":");
        value.write(out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_serde_json_writes_them() {
        let texts = ["a \"b\"".to_owned(), "ü\n".to_owned()];
        let inner = [("size", Json::Decimal(0.5)), ("why", Json::or_null(None))];
        let fields = [
            ("args", Json::Object(&inner)),
            ("list", Json::Texts(&texts)),
            ("number", Json::Number(u64::MAX)),
            ("path", Json::or_absent(None)),
        ];
        let mut written = Vec::new();
        Json::Object(&fields).write(&mut written);
        let same = serde_json::json!({
            "args": { "size": 0.5, "why": null }, "list": texts, "number": u64::MAX,
        });
        assert_eq!(String::from_utf8(written).expect("text"), same.to_string());
    }
}
