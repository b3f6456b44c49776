from benchmarks.gpu_compile.hlo import Program

TEXT = """HloModule jit_f, is_scheduled=true

%update (param_0: f32[5,8], param_1: s32[], param_2: f32[8]) -> f32[5,8] {
  %param_0 = f32[5,8]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %param_2 = f32[8]{0} parameter(2)
  %row = f32[1,8]{1,0} bitcast(%param_2)
  %zero = s32[] constant(0)
  ROOT %new = f32[5,8]{1,0} dynamic-update-slice(%param_0, %row, %param_1, %zero)
}

%body (state: (s32[], f32[5,8], f32[8])) -> (s32[], f32[5,8], f32[8]) {
  %state = (s32[], f32[5,8]{1,0}, f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%state), index=0
  %rows = f32[5,8]{1,0} get-tuple-element(%state), index=1
  %row.1 = f32[8]{0} get-tuple-element(%state), index=2
  %next = s32[] add(%k, %k)
  %kept = f32[5,8]{1,0} fusion(%rows, %k, %row.1), kind=kLoop, calls=%update
  ROOT %out = (s32[], f32[5,8]{1,0}, f32[8]{0}) tuple(%next, %kept, %row.1)
}

ENTRY %main (x: f32[5,8], y: f32[8]) -> f32[5,8] {
  %x = f32[5,8]{1,0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %one = s32[] constant(1)
  %start = (s32[], f32[5,8]{1,0}, f32[8]{0}) tuple(%one, %x, %y)
  %loop = (s32[], f32[5,8]{1,0}, f32[8]{0}) while(%start), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %result = f32[5,8]{1,0} get-tuple-element(%loop), index=1
}
"""  # noqa: E501


def test_loops_count_their_rounds_and_updates_the_rows_that_they_write():
    count = Program(TEXT, bandwidth=1e9, launch=1e-9).count()
    assert count.kernels == 5 * 2 and count.loops == ["5x2"]
    assert count.kinds == {"add": 5, "fusion": 5}
    assert count.moved == 5 * (3 * 4 + (4 + 32 + 32))  # an add, and a row of eight
    assert abs(count.seconds - 1e-9 * count.moved) < 1e-15
