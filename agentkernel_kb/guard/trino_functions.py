"""What may stand in front of a bracket of arguments in Trino: functions that only compute, by name.

Source: the pages "Functions and operators" of Trino's manual.
"""

from __future__ import annotations

_GRAMMAR = "all any some row"
_AGGREGATES = """
any_value approx_distinct approx_most_frequent approx_percentile approx_set arbitrary array_agg avg bitwise_and_agg
bitwise_or_agg bitwise_xor_agg bool_and bool_or checksum corr count count_if covar_pop covar_samp entropy every geometric_mean
histogram kurtosis listagg make_set_digest map_agg map_union max max_by merge merge_set_digest min min_by multimap_agg
numeric_histogram qdigest_agg reduce_agg regr_intercept regr_slope skewness stddev stddev_pop stddev_samp sum tdigest_agg
var_pop var_samp variance
"""
_WINDOWS = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
_ROW_PATTERNS = "classifier first last match_number next prev"
_ARRAYS = """
all_match any_match array_distinct array_except array_first array_histogram array_intersect array_join array_last array_max
array_min array_position array_remove array_sort array_union arrays_overlap cardinality combinations concat contains
contains_sequence cosine_distance cosine_similarity dot_product element_at euclidean_distance filter flatten ngrams none_match
reduce repeat reverse sequence shuffle slice transform trim_array zip zip_with
"""
_MAPS = """
map map_concat map_entries map_filter map_from_entries map_keys map_values map_zip_with multimap_from_entries split_to_map
split_to_multimap transform_keys transform_values
"""
_BINARY = """
crc32 from_base32 from_base64 from_base64url from_big_endian_32 from_big_endian_64 from_hex from_ieee754_32 from_ieee754_64
hmac_md5 hmac_sha1 hmac_sha256 hmac_sha512 md5 murmur3 sha1 sha256 sha512 spooky_hash_v2_32 spooky_hash_v2_64 to_base32
to_base64 to_base64url to_big_endian_32 to_big_endian_64 to_hex to_ieee754_32 to_ieee754_64 xxhash64
"""
_BITS = """
bit_count bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_right_shift_arithmetic bitwise_xor
"""
_CONDITIONS = "coalesce greatest grouping if least nullif try typeof format format_number parse_data_size is_json_scalar"
_DATES = """
at_timezone current_date current_time current_timestamp current_timezone date date_add date_diff date_format date_parse
date_trunc day day_of_month day_of_week day_of_year dow doy extract format_datetime from_iso8601_date
from_iso8601_timestamp from_iso8601_timestamp_nanos from_unixtime from_unixtime_nanos hour human_readable_seconds
last_day_of_month localtime localtimestamp millisecond minute month now parse_datetime parse_duration quarter second timezone
timezone_hour timezone_minute to_iso8601 to_milliseconds to_unixtime week week_of_year with_timezone year year_of_week yow
"""
_JSON = """
json_array json_array_contains json_array_get json_array_length json_exists json_extract json_extract_scalar json_format
json_object json_parse json_query json_size json_table json_value
"""
_MATHS = """
abs acos asin atan atan2 beta_cdf cbrt ceil ceiling cos cosh degrees e exp floor from_base infinity inverse_beta_cdf
inverse_normal_cdf is_finite is_infinite is_nan ln log log10 log2 mod nan normal_cdf pi pow power radians rand random round sign
sin sinh sqrt t_cdf t_pdf tan tanh to_base truncate width_bucket wilson_interval_lower wilson_interval_upper
"""
_STRINGS = """
chr codepoint concat_ws from_utf8 hamming_distance length levenshtein_distance lower lpad ltrim luhn_check normalize position
regexp_count regexp_extract regexp_extract_all regexp_like regexp_position regexp_replace regexp_split replace rpad rtrim
soundex split split_part starts_with strpos substr substring to_utf8 translate trim upper uuid word_stem
"""
_URLS = """
url_decode url_encode url_extract_fragment url_extract_host url_extract_parameter url_extract_path url_extract_port
url_extract_protocol url_extract_query
"""
_SKETCHES = """
empty_approx_set hash_counts intersection_cardinality jaccard_index qdigest_values value_at_quantile values_at_quantiles
quantile_at_value tdigest_values
"""
_COLOURS = "bar color render rgb"
_GEOMETRY = """
bing_tile bing_tile_at bing_tile_coordinates bing_tile_polygon bing_tile_quadkey bing_tile_zoom_level bing_tiles_around
convex_hull_agg geometry_from_hadoop_shape geometry_invalid_reason geometry_nearest_points geometry_to_bing_tiles
geometry_union geometry_union_agg great_circle_distance line_interpolate_point line_locate_point simplify_geometry st_area
st_asbinary st_astext st_boundary st_buffer st_centroid st_contains st_convexhull st_coorddim st_crosses st_difference
st_dimension st_disjoint st_distance st_endpoint st_envelope st_envelopeaspts st_equals st_exteriorring st_geometries
st_geometryfromtext st_geometryn st_geometrytype st_geomfrombinary st_interiorringn st_interiorrings st_intersection
st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_length st_linefromtext st_linestring st_multipoint
st_numgeometries st_numinteriorring st_numpoints st_overlaps st_point st_pointn st_points st_polygon st_relate st_startpoint
st_symdifference st_touches st_union st_within st_x st_xmax st_xmin st_y st_ymax st_ymin to_geometry to_spherical_geography
"""

TRINO_FUNCTIONS = frozenset(
    " ".join(
        (
            _GRAMMAR,
            _AGGREGATES,
            _WINDOWS,
            _ROW_PATTERNS,
            _ARRAYS,
            _MAPS,
            _BINARY,
            _BITS,
            _CONDITIONS,
            _DATES,
            _JSON,
            _MATHS,
            _STRINGS,
            _URLS,
            _SKETCHES,
            _COLOURS,
            _GEOMETRY,
        )
    ).split()
)
"""Functions that compute a value and do nothing else.

Left out on purpose, with all that is not known: `fail`, the functions that ask a language model over the network (`ai_gen` and
its kind), `current_groups`, `version`, the training of models, and whatever a plugin or a `CREATE FUNCTION` brings.
"""

TRINO_TABLE_FUNCTIONS = frozenset(["descriptor", "exclude_columns", "sequence", "table", "unnest"])
"""Table functions of Trino itself and the grammar around them.

Left out on purpose: those of connectors, which pass text through to another system (`system.query`, `system.raw_query`, …).
"""
