import com.yahoo.config.model.application.provider.BaseDeployLogger;
import com.yahoo.config.model.application.provider.FilesApplicationPackage;
import com.yahoo.config.model.application.provider.MockFileRegistry;
import com.yahoo.config.model.deploy.TestProperties;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfileRegistry;
import com.yahoo.search.query.profile.QueryProfileRegistry;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads the schema of an application, and evaluates the global phase of its profile for the documents of each query. */
class VespaFusion {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        var profiles = new RankProfileRegistry();
        var queryProfiles = new QueryProfileRegistry();
        var application = FilesApplicationPackage.fromDir(folder.toFile(), Map.of());
        var builder = new ApplicationBuilder(application, new MockFileRegistry(), new BaseDeployLogger(),
            new TestProperties(), profiles, queryProfiles);
        builder.build(true);
        var source = profiles.get(builder.getSchema(), "podium");
        var profile = source.compile(queryProfiles, new ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels());
        Map<String, List<MapContext>> queries = new LinkedHashMap<>();
        List<String> lines = Files.readAllLines(folder.resolve("rows.tsv"));
        String[] names = lines.get(0).split("\t");
        List<MapContext> all = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] values = line.split("\t");
            var features = new MapContext();
            for (int i = 1; i < names.length; i++) {
                features.put("attribute(" + names[i] + ")", new DoubleValue(Float.parseFloat(values[i])));
            }
            // Functions of features first, then those of functions.
            for (int turn = 0; turn < 2; turn++) {
                for (var function : profile.getFunctions().entrySet()) {
                    try {
                        features.put(function.getKey(), function.getValue().function().getBody().evaluate(features));
                    } catch (RuntimeException notYet) {
                        if (turn == 1) throw notYet;
                    }
                }
            }
            queries.computeIfAbsent(values[0], key -> new ArrayList<>()).add(features);
            all.add(features);
        }
        var normalizers = profile.getFeatureNormalizers();
        for (List<MapContext> documents : queries.values()) {
            for (var each : normalizers.values()) {
                boolean linear = each.algo().equals("LINEAR");
                Class<?> kind = Class.forName("com.yahoo.search.ranking." + (linear ? "Linear" : "ReciprocalRank") + "Normalizer");
                var constructor = kind.getDeclaredConstructors()[0];
                constructor.setAccessible(true);
                Object normalizer = linear ? constructor.newInstance(documents.size()) : constructor.newInstance(documents.size(), each.kparam());
                for (MapContext document : documents) {
                    call(normalizer, "addInput", double.class, document.get(each.input()).asDouble());
                }
                call(normalizer, "normalize", null, null);
                for (int i = 0; i < documents.size(); i++) {
                    double value = (double) call(normalizer, "getOutput", int.class, i);
                    documents.get(i).put(each.name(), new DoubleValue(value));
                }
            }
        }
        for (MapContext document : all) {
            System.out.println("score " + profile.getGlobalPhaseRanking().evaluate(document).asDouble());
        }
        System.exit(0); // its threads would wait
    }

    private static Object call(Object owner, String name, Class<?> type, Object argument) throws Exception {
        Class<?> normalizer = owner.getClass().getSuperclass();
        Method method = type == null ? normalizer.getDeclaredMethod(name) : normalizer.getDeclaredMethod(name, type);
        method.setAccessible(true);
        return type == null ? method.invoke(owner) : method.invoke(owner, argument);
    }
}
