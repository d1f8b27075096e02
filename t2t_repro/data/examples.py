"""Serialize `tf.train.Example` without importing TensorFlow (3 s, 500 MB).

The messages are those of TensorFlow's `core/example/example.proto` and
`core/example/feature.proto`, without the kinds of features that shards do not have.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from t2t_repro.constants import INPUTS, TARGETS

_Field = descriptor_pb2.FieldDescriptorProto


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Return the serialized `tf.train.Example` of a pair of id sequences."""
    example = _Example()
    for name, ids in ((INPUTS, inputs), (TARGETS, targets)):
        example.features.feature[name].int64_list.value.extend(ids)
    return example.SerializeToString(deterministic=True)


def _example_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(
        name="t2t_repro/example.proto", package="t2t_repro", syntax="proto3"
    )
    ids = file.message_type.add(name="Int64List")
    ids.field.add(
        name="value", number=1, type=_Field.TYPE_INT64, label=_Field.LABEL_REPEATED
    )
    feature = file.message_type.add(name="Feature")
    _add_message_field(feature, "int64_list", 3, "Int64List")
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(
        name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL
    )
    _add_message_field(entry, "value", 2, "Feature")
    _add_message_field(features, "feature", 1, "Features.FeatureEntry", repeated=True)
    example = file.message_type.add(name="Example")
    _add_message_field(example, "features", 1, "Features")
    # A pool of its own: TensorFlow registers its messages in the default one.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t2t_repro.Example")
    return message_factory.GetMessageClass(found)


def _add_message_field(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: str,
    *,
    repeated: bool = False,
) -> None:
    message.field.add(
        name=name,
        number=number,
        type=_Field.TYPE_MESSAGE,
        type_name=f".t2t_repro.{kind}",
        label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
    )


_Example = _example_class()
