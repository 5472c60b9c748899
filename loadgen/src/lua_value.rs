//! Lua values on their way from one thread's state to another's: copies, since states share nothing.

use mlua::{Lua, Table};

/// Deeper tables are refused; a table that holds itself is deeper than anything.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nil,
    Boolean(bool),
    Number(f64),
    String(Vec<u8>),
    Table(Vec<(Value, Value)>),
}

impl Value {
    pub fn from_lua(value: &mlua::Value) -> mlua::Result<Self> {
        Self::copy(value, 0)
    }

    fn copy(value: &mlua::Value, depth: usize) -> mlua::Result<Self> {
        match value {
            mlua::Value::Nil => Ok(Self::Nil),
            mlua::Value::Boolean(value) => Ok(Self::Boolean(*value)),
            mlua::Value::Integer(value) => Ok(Self::Number(*value as f64)),
            mlua::Value::Number(value) => Ok(Self::Number(*value)),
            mlua::Value::String(value) => Ok(Self::String(value.as_bytes().to_vec())),
            mlua::Value::Table(table) if depth < DEPTH_MAX => {
                let pairs = table.pairs::<mlua::Value, mlua::Value>();
                let copied = pairs.map(|pair| {
                    pair.and_then(|(key, value)| {
                        Ok((Self::copy(&key, depth + 1)?, Self::copy(&value, depth + 1)?))
                    })
                });
                copied.collect::<mlua::Result<_>>().map(Self::Table)
            }
            mlua::Value::Table(_) => {
                Err(mlua::Error::runtime("a table that holds itself cannot go to another thread"))
            }
            other => {
                Err(mlua::Error::runtime(format!("a {} cannot go to another thread", other.type_name())))
            }
        }
    }

    pub fn to_lua(&self, lua: &Lua) -> mlua::Result<mlua::Value> {
        Ok(match self {
            Self::Nil => mlua::Value::Nil,
            Self::Boolean(value) => mlua::Value::Boolean(*value),
            Self::Number(value) => mlua::Value::Number(*value),
            Self::String(value) => mlua::Value::String(lua.create_string(value)?),
            Self::Table(pairs) => {
                let table: Table = lua.create_table()?;
                for (key, value) in pairs {
                    table.raw_set(key.to_lua(lua)?, value.to_lua(lua)?)?;
                }
                mlua::Value::Table(table)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_keys_and_values_the_right_way_round() {
        let lua = Lua::new();
        let table: mlua::Value =
            lua.load("return { a = 1, [2] = 'two', nested = { true, false } }").eval().unwrap();
        let copy = Value::from_lua(&table).unwrap();
        let other = Lua::new();
        other.globals().set("t", copy.to_lua(&other).unwrap()).unwrap();
        other
            .load("assert(t.a == 1 and t[2] == 'two' and t.nested[1] == true and t.nested[2] == false)")
            .exec()
            .unwrap();
    }

    #[test]
    fn functions_and_circles_are_refused() {
        let lua = Lua::new();
        for (code, part) in
            [("return print", "a function cannot"), ("local t = {}; t.t = t; return t", "holds itself")]
        {
            let value: mlua::Value = lua.load(code).eval().unwrap();
            let message = Value::from_lua(&value).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
