//! Results as Python objects: what [`serde`] describes becomes dicts, lists, numbers, strings and None, as JSON would
//! say it, without a text between.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, Serializer,
};

/// The object that JSON would make of `value`.
pub(crate) fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    value.serialize(Objects { py }).map_err(|error| error.0)
}

/// The dicts of a list.
pub(crate) fn rows<'py>(list: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    list.try_iter()?.map(|item| Ok(item?.cast_into::<PyDict>()?)).collect()
}

thread_local! {
    /// The names of entries, which are the same in every result, by their place in the program.
    static NAMES: RefCell<BTreeMap<(usize, usize), Py<PyString>>> = RefCell::default();
}

fn name<'py>(py: Python<'py>, text: &'static str) -> Bound<'py, PyString> {
    NAMES.with_borrow_mut(|names| {
        let made = || PyString::intern(py, text).unbind();
        names.entry((text.as_ptr() as usize, text.len())).or_insert_with(made).bind(py).clone()
    })
}

/// An exception, as the kind of error that [`serde`] wants.
#[derive(Debug)]
struct Raised(PyErr);

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Raised(error)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

impl ser::Error for Raised {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Raised(PyTypeError::new_err(why.to_string()))
    }
}

#[derive(Copy, Clone)]
struct Objects<'py> {
    py: Python<'py>,
}

type Made<'py> = Result<Bound<'py, PyAny>, Raised>;

impl<'py> Objects<'py> {
    fn plain<T>(self, value: T) -> Made<'py>
    where
        T: IntoPyObject<'py>,
        T::Error: Into<PyErr>,
    {
        value.into_bound_py_any(self.py).map_err(Raised)
    }

    fn none(self) -> Made<'py> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn refused<T>(self, what: &str) -> Result<T, Raised> {
        Err(ser::Error::custom(format!("a result has no {what}")))
    }
}

/// The methods of [`Serializer`] for values that Python has as they are.
macro_rules! plain {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Made<'py> {
            self.plain(value)
        })*
    };
}

impl<'py> Serializer for Objects<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Raised;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Impossible<Self::Ok, Raised>;
    type SerializeTupleVariant = Impossible<Self::Ok, Raised>;
    type SerializeMap = Entries<'py>;
    type SerializeStruct = Entries<'py>;
    type SerializeStructVariant = Impossible<Self::Ok, Raised>;

    plain!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    plain!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    plain!(serialize_char: char, serialize_str: &str);

    fn serialize_f32(self, value: f32) -> Made<'py> {
        self.serialize_f64(value.into())
    }

    /// JSON has neither infinity nor "not a number": both are None.
    fn serialize_f64(self, value: f64) -> Made<'py> {
        if value.is_finite() { self.plain(value) } else { self.none() }
    }

    fn serialize_bytes(self, _: &[u8]) -> Made<'py> {
        self.refused("bytes")
    }

    fn serialize_none(self) -> Made<'py> {
        self.none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made<'py> {
        self.none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made<'py> {
        self.none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made<'py> {
        Ok(name(self.py, variant).into_any())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Made<'py> {
        self.refused("variant with a value")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, Raised> {
        Ok(Items { list: PyList::empty(self.py) })
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'py>, Raised> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Raised> {
        self.refused("tuple with a name")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Raised> {
        self.refused("variant with a tuple")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'py>, Raised> {
        Ok(Entries { dict: PyDict::new(self.py), key: None })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Entries<'py>, Raised> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Raised> {
        self.refused("variant with entries")
    }
}

/// A list that is being filled.
struct Items<'py> {
    list: Bound<'py, PyList>,
}

impl<'py> SerializeSeq for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Raised;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Raised> {
        let value = value.serialize(Objects { py: self.list.py() })?;
        Ok(self.list.append(value)?)
    }

    fn end(self) -> Made<'py> {
        Ok(self.list.into_any())
    }
}

impl<'py> SerializeTuple for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Raised;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Raised> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Made<'py> {
        SerializeSeq::end(self)
    }
}

/// A dict that is being filled.
struct Entries<'py> {
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyAny>>,
}

impl<'py> SerializeMap for Entries<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Raised;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Raised> {
        self.key = Some(key.serialize(Objects { py: self.dict.py() })?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Raised> {
        let value = value.serialize(Objects { py: self.dict.py() })?;
        Ok(self.dict.set_item(self.key.take(), value)?)
    }

    fn end(self) -> Made<'py> {
        Ok(self.dict.into_any())
    }
}

impl<'py> SerializeStruct for Entries<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Raised;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Raised> {
        let py = self.dict.py();
        let value = value.serialize(Objects { py })?;
        Ok(self.dict.set_item(name(py, key), value)?)
    }

    fn end(self) -> Made<'py> {
        Ok(self.dict.into_any())
    }
}
