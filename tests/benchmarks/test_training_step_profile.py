from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks.training.step_profile import LOSS, OTHER, parts_of, seconds_by_part

LAYER = "transformer_1/encoder_1/layer_0/self_attention"
PROGRAM = f"""
ENTRY %main () -> f32[] {{
  %arg.1 = f32[4,8]{{1,0}} parameter(0)
  %MatMul.1 = f32[4,8]{{1,0}} dot(%arg.1), metadata={{op_name="{LAYER}_1/query/MatMul"}}
  %MatMul.2 = f32[4,4]{{1,0}} dot(%arg.1), metadata={{op_name="{LAYER}_1/MatMul"}}
  %logits = f32[4,90]{{1,0}} dot(%arg.1), metadata={{op_name="transformer_1/MatMul"}}
  %exp = f32[4,90]{{1,0}} fusion(%arg.1), kind=kLoop
  %window.3 = f32[4,3]{{1,0}} fusion(%logits), kind=kLoop
  %mean = f32[4]{{0}} fusion(%MatMul.1), metadata={{op_name="{LAYER}_residual_1/mean"}}
  ROOT %sum = f32[] fusion(%arg.1), metadata={{op_name="global_norm/L2Loss"}}
}}
"""
PARTS = {
    "arg.1": OTHER,
    "MatMul.1": "other matrix products",
    "MatMul.2": "attention, products",
    "logits": "output layer, product",
    "exp": LOSS,
    "window.3": LOSS,
    "mean": "residual, dropout, normalization",
    "sum": "gradient norm",
}


def test_an_operation_belongs_to_the_part_of_its_layer_or_of_its_operand():
    assert parts_of(PROGRAM, vocab_size=90) == PARTS


def test_the_times_of_a_part_are_added_up():
    space = xplane_pb2.XSpace()
    plane = space.planes.add()
    for number, name in enumerate(["logits", "exp", "window.3", "not of the program"]):
        plane.event_metadata[number].name = name
        line = plane.lines.add()
        line.events.add(metadata_id=number, duration_ps=10**12 * (number + 1))
    seconds = seconds_by_part(space, PARTS)
    assert seconds == {"output layer, product": 1.0, LOSS: 5.0}
